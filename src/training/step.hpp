// gemini_step: agree on what happened, then update this rank's shards.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/basic_operations.hpp"
#include "collectives/ranks.hpp"
#include "training/pieces.hpp"
#include "training/settings.hpp"

namespace gemini {

// What all ranks know after the exchange.
struct StepVerdict {
  double grad_norm = 0;  // unscaled, before clipping
  bool finite = true;
  std::vector<bool> produced;  // by parameter: some rank wrote a gradient
};

// Looks at the reduced gradients of this rank and exchanges. scale: the loss scale of these gradients. peaks:
// each becomes the largest over ranks.
StepVerdict exchange_step(Ranks& ranks, const Shards& shards, bool infinity_norm, double scale, Words& peaks);

// Each sum over the shards of all ranks, whose part of it is in `sums`, some hundred to a message; all ranks
// call. what: for the words of a wait.
void add_over_shards(Ranks& ranks, std::vector<ExactSum>& sums, const char* what);

// clip: g *= min(1, max_norm / (norm + 1e-6)); max_norm 0: off.
double clip_factor(double norm, double max_norm);

struct CustomUpdate {
  gemini_shard_fn function = nullptr;
  void* user = nullptr;
};

struct Update {
  const StepSettings& settings;
  const StepVerdict& verdict;
  double grad_factor;  // unscaling and clipping in one
  CustomUpdate custom;
};

// Updates every parameter that has a gradient and counts its step; all ranks call.
void apply_update(Ranks& ranks, const Shards& shards, const Update& update);

}  // namespace gemini
