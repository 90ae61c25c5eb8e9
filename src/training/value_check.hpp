// check = values: what must be equal on all ranks is compared. All ranks call, and all throw the same
// GEMINI_ERR_MISMATCH.
#pragma once

#include <vector>

#include "collectives/ranks.hpp"
#include "training/pieces.hpp"

namespace gemini {

// gemini_param_init_data on several ranks gave the same values.
void check_same_data(Ranks& ranks, const Registry& registry);
// The shards hold finite values.
void check_finite(Ranks& ranks, const Shards& shards);
// The gathered copies of these chunks are the same.
void check_same_copies(Ranks& ranks, Registry& registry, const ChunkStore& store,
                       const std::vector<int>& chunks);

}  // namespace gemini
