// What the sharded step is compared with: every rank holds all parameters, gradients and moments, adds up
// gradients with MPI_Allreduce, chunk by chunk as soon as backward has made them, clips and updates
// everything. Update and norm are the library's own kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "transformer.hpp"

namespace gemini_bench {

struct AdamW {
  double lr, weight_decay, max_grad_norm;
};

class Replicated {
 public:
  // values: of all parameters, one after the other. Gradients travel in pieces of chunk_elems.
  Replicated(std::vector<float> values, std::int64_t chunk_elems, const AdamW& rules);

  // Returns the norm of the gradient before clipping. in_rank_order: adds as the library does, for its bits,
  // instead of as MPI likes.
  double step(Transformer& network, bool in_rank_order = false);
  [[nodiscard]] const std::vector<float>& values() const { return values_; }

 private:
  void add_over_ranks(std::int64_t first, bool in_rank_order);  // what lies from here on
  double update();

  std::int64_t chunk_elems_;
  AdamW rules_;
  int ranks_ = 1;
  std::int64_t steps_ = 0, added_from_ = 0;
  std::vector<float> values_, gradients_, moment1_, moment2_;
  std::vector<std::vector<const float*>> weights_of_;  // by operation
  std::vector<std::vector<float*>> gradients_of_;
};

}  // namespace gemini_bench
