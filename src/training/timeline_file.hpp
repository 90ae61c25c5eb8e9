// The timelines of all ranks in one file.
#pragma once

#include "base/timeline.hpp"
#include "collectives/ranks.hpp"

namespace gemini {

// Rank 0 writes; every rank calls, in agreement. timeline: NULL on a rank that has none.
void write_timelines(Ranks& ranks, const Timeline* timeline, const char* path);

}  // namespace gemini
