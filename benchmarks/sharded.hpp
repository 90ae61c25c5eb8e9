// The transformer as a user of the library trains it: a layer is one operation in each direction.
#pragma once

#include <vector>

#include "context.hpp"
#include "transformer.hpp"

namespace gemini_bench {

class Sharded {
 public:
  explicit Sharded(const Settings& settings);

  // Returns the norm of the gradient before clipping.
  double step(Transformer& network);
  // Of all parameters, one after the other. Agreed.
  [[nodiscard]] std::vector<float> values() const;
  [[nodiscard]] std::int64_t stat(gemini_stat_t which) const;
  [[nodiscard]] gemini_context_t context() const { return ctx_; }

 private:
  Context ctx_;
  std::vector<Params> operations_;
  std::vector<const float*> weights_;  // of the operation at hand
  std::vector<float*> gradients_;
};

}  // namespace gemini_bench
