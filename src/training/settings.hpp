// The options that a step reads, parsed once.
#pragma once

#include <cstdint>

#include "base/options.hpp"
#include "kernels/optimizers.hpp"
#include "training/loss_scale.hpp"

namespace gemini {

enum class UpdateKind { builtin, custom, none };

struct StepSettings {
  explicit StepSettings(const Options& options);

  UpdateKind kind;
  kernels::Optimizer optimizer{};  // of builtin
  kernels::Hyper hyper;            // weight_decay: unless a parameter has its own
  int states;                      // arrays per parameter
  std::int64_t accumulate;
  double max_grad_norm;  // 0: off
  bool infinity_norm;
  bool skip_nonfinite;
  LossScaleRules scale_rules;
};

// any_f16: a trained parameter is F16, which makes `auto` dynamic.
LossScale make_loss_scale(const Options& options, bool any_f16);

}  // namespace gemini
