#include "sharded.hpp"

namespace gemini_bench {

Sharded::Sharded(const Settings& settings) : ctx_(settings) {
  std::uint64_t seed = 0;
  for (const auto& operation : Transformer::operations()) {
    operations_.emplace_back();
    for (const Tensor& tensor : operation) {
      gemini_param_t param = nullptr;
      check(gemini_param_register(ctx_, tensor.name.c_str(), GEMINI_F32, 1, &tensor.elems, 0, &param));
      const bool normal = tensor.begins == Tensor::Begins::normal;
      const double constant = tensor.begins == Tensor::Begins::ones ? 1 : 0;
      check(gemini_param_init_fill(param, normal ? GEMINI_INIT_NORMAL : GEMINI_INIT_CONSTANT,
                                   normal ? 0 : constant, 0.02, seed++));
      operations_.back().push_back(param);
    }
  }
  check(gemini_commit(ctx_));
}

double Sharded::step(Transformer& network) {
  const auto operations = static_cast<int>(operations_.size());
  const auto operate = [&](int operation, bool backward) {
    const Params& params = operations_[static_cast<std::size_t>(operation)];
    const auto count = static_cast<std::int32_t>(params.size());
    check(gemini_pre_op(ctx_, params.data(), count));
    weights_.clear();
    gradients_.clear();
    for (gemini_param_t param : params) {
      void* values = nullptr;
      check(gemini_param_data(param, &values));
      weights_.push_back(static_cast<const float*>(values));
      if (!backward) continue;
      std::int32_t accumulate = 0;  // one operation writes it, once
      check(gemini_param_grad(param, &values, &accumulate));
      gradients_.push_back(static_cast<float*>(values));
    }
    backward ? network.backward(operation, weights_, gradients_) : network.forward(operation, weights_);
    check(gemini_post_op(ctx_, params.data(), count));
  };
  for (int i = 0; i < operations; ++i) operate(i, false);
  check(gemini_set_phase(ctx_, GEMINI_BACKWARD));
  for (int i = operations - 1; i >= 0; --i) operate(i, true);
  gemini_step_info_t info = GEMINI_STEP_INFO_INIT;
  check(gemini_step(ctx_, &info));
  return info.grad_norm;
}

std::vector<float> Sharded::values() const {
  std::vector<float> all;
  for (const Params& params : operations_)
    for (gemini_param_t param : params) {
      gemini_param_info_t info = GEMINI_PARAM_INFO_INIT;
      check(gemini_param_info(param, &info));
      const std::size_t at = all.size();
      all.resize(at + static_cast<std::size_t>(info.elems));
      check(gemini_param_get(param, GEMINI_F32, all.data() + at, -1));
    }
  return all;
}

std::int64_t Sharded::stat(gemini_stat_t which) const {
  std::int64_t value = 0;
  check(gemini_stat(ctx_, which, &value));
  return value;
}

}  // namespace gemini_bench
