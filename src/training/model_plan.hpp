// What commit decides before anything is allocated: chunks, and where each part of them lies at rest.
#pragma once

#include <cstdint>
#include <vector>

#include "base/options.hpp"
#include "chunks/chunk_store.hpp"
#include "collectives/shared_segment.hpp"
#include "placement/homes.hpp"
#include "training/registry.hpp"

namespace gemini {

// Budgets and the rest of what all ranks agreed on.
struct ModelLimits {
  int shard_ranks = 1;     // over which a chunk is sharded
  bool needs_slot = true;  // see Transport
  int ranks_per_slot = 1;  // the same
  std::int64_t compute_bytes = -1;
  std::int64_t host_bytes = 0;
  bool files = false;
};

struct ModelPlan {
  Layout layout;
  TrainingState state;
  std::vector<RestingItem> items;  // with their homes
  std::int64_t fixed_bytes = 0;    // of compute memory that never move: what is RESIDENT
  Place kept = Place::host;        // accumulate_mode = local: whole gradients
  std::int64_t kept_bytes = 0;     // of them
  bool offloads = false;           // placement = static keeps some out of compute memory
  std::int64_t window_elems = 0;   // of staging buffers in host memory; 0: nothing is staged
  std::int64_t spill_bytes = 0;    // of files that may be needed

  [[nodiscard]] Place home(int chunk, Item item) const;
};

// Throws GEMINI_ERR_OUT_OF_MEMORY in words if the model does not fit.
ModelPlan make_model_plan(const Options& options, const Registry& registry, const ModelLimits& limits);

// What of it ranks may share on a node.
std::vector<SharedChunk> shared_chunks(const ModelPlan& plan);

// Homes by the rules of placement = auto and planned: as little compute memory as the lower tiers allow, from
// `wanted` up to `most`. Returns the bytes that fit nowhere.
std::int64_t fill_adapting(std::vector<RestingItem>& items, Rooms rooms, std::int64_t wanted,
                           std::int64_t most);

}  // namespace gemini
