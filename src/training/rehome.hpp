// Between iterations: shards move to where what was learnt leaves room for them.
#pragma once

#include "placement/forecast.hpp"
#include "training/residency.hpp"

namespace gemini {

// Compute memory that copies and gradients leave at every event; events: how many there are.
std::int64_t room_at_rest(const Forecast& forecast, int events);

// Nothing is leased. room: of compute memory, for what rests there and may move.
void rehome(ChunkStore& store, Residency& residency, std::int64_t room_bytes, std::int64_t fixed_bytes);

}  // namespace gemini
