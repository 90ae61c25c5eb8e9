// The problem trained through the library.
#include "model.hpp"
#include "narrow.hpp"

namespace equivalence {
namespace {

using gemini_test::Context;
using gemini_test::elems;

struct Initial {
  int tensor;
  gemini_dtype_t dtype;
};
int fill(void* user, int64_t first, int64_t count, void* values) {
  const auto& initial = *static_cast<const Initial*>(user);
  for (int64_t i = 0; i < count; ++i)
    store(initial.dtype, values, i, initial_value(initial.tensor, first + i));
  return 0;
}

class LibraryRun {
 public:
  LibraryRun(const Problem& problem, const Variant& variant)
      : problem_(problem),
        variant_(variant),
        tensors_(tensors_of(problem)),
        ctx_(MPI_COMM_WORLD, settings()) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    initial_.reserve(tensors_.size());
    for (std::size_t t = 0; t < tensors_.size(); ++t) add(static_cast<int>(t));
    ctx_.commit();
  }

  Result train() {
    Result result;
    for (int step = 0; step < kSteps; ++step) {
      for (int micro_batch = 0; micro_batch < problem_.accumulate; ++micro_batch)
        run_micro_batch({step, micro_batch, rank_});
      const gemini_step_info_t info = ctx_.step();
      result.norms.push_back(info.grad_norm);
      result.skipped.push_back(info.skipped);
      result.updated.push_back(info.params_updated);
    }
    for (gemini_param_t param : params_) result.values.push_back(gemini_test::values(param));
    return result;
  }

 private:
  [[nodiscard]] gemini_test::KeyValues settings() const {
    gemini_test::KeyValues all = problem_.options;
    all.insert(all.end(), variant_.options.begin(), variant_.options.end());
    all.emplace_back("accumulate", std::to_string(problem_.accumulate));
    return all;
  }

  void add(int t) {
    const Tensor& tensor = tensors_[static_cast<std::size_t>(t)];
    const bool resident = variant_.residence == Variant::all_resident ||
                          (variant_.residence == Variant::some_resident && t % 3 == 2);
    const int32_t flags = (tensor.frozen ? GEMINI_PARAM_FROZEN : 0) | (resident ? GEMINI_PARAM_RESIDENT : 0);
    gemini_param_t param = ctx_.add(tensor.name, tensor.dtype, {tensor.elems}, flags);
    initial_.push_back({t, tensor.dtype});
    GEMINI_CHECK(gemini_param_init_function(param, fill, &initial_.back()));
    if (tensor.lr_scale != 1)
      GEMINI_CHECK(gemini_param_set_option(param, "lr_scale", std::to_string(tensor.lr_scale).c_str()));
    if (tensor.weight_decay >= 0)
      GEMINI_CHECK(
          gemini_param_set_option(param, "weight_decay", std::to_string(tensor.weight_decay).c_str()));
    if (tensor.grad_dtype != tensor.dtype) GEMINI_CHECK(gemini_param_set_option(param, "grad_dtype", "f32"));
    params_.push_back(param);
  }

  [[nodiscard]] gemini_test::Params params_of(const Step& op) const {
    return {params_[static_cast<std::size_t>(op.own)], params_[static_cast<std::size_t>(op.other)]};
  }

  void run_micro_batch(const When& when) {
    const auto& ops = operations();
    for (const Step& op : ops) ctx_.op(GEMINI_FORWARD, params_of(op));
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
      ctx_.op(GEMINI_BACKWARD, params_of(*op), [&] { add_gradient(*op, when); });
      // Tensor 3's other operation is still to come; the rest may be declared complete after their own.
      const bool ready = variant_.declare_ready && op->own != kTiedTensor && (op->own + when.step) % 2 == 0;
      if (ready && !tensors_[static_cast<std::size_t>(op->own)].frozen)
        GEMINI_CHECK(gemini_grad_ready(params_[static_cast<std::size_t>(op->own)]));
    }
  }

  void add_gradient(const Step& op, const When& when) {
    const Tensor& own = tensors_[static_cast<std::size_t>(op.own)];
    const Tensor& other = tensors_[static_cast<std::size_t>(op.other)];
    if (own.frozen || !asks(op.own, when)) return;
    const gemini_test::Params params = params_of(op);
    double scale = 0;
    GEMINI_CHECK(gemini_loss_scale(ctx_, &scale));
    void* grad = nullptr;
    int32_t accumulate = 1;
    GEMINI_CHECK(gemini_param_grad(params[0], &grad, when.step % 2 == 0 ? &accumulate : nullptr));
    const void* own_values = gemini_data(params[0]);
    const void* other_values = gemini_data(params[1]);
    for (int64_t i = 0; i < own.elems; ++i) {
      const double read = other.elems > 0 ? load(other.dtype, other_values, i * 7 % other.elems) : 0;
      const double value = rounded(
          own.grad_dtype, gradient_value(op.own, i, when, load(own.dtype, own_values, i), read, scale));
      store(own.grad_dtype, grad, i, accumulate != 0 ? load(own.grad_dtype, grad, i) + value : value);
    }
  }

  const Problem& problem_;
  const Variant& variant_;
  std::vector<Tensor> tensors_;
  int rank_ = 0;
  std::vector<Initial> initial_;
  Context ctx_;
  gemini_test::Params params_;
};

}  // namespace

Result train_with_library(const Problem& problem, const Variant& variant) {
  return LibraryRun(problem, variant).train();
}

}  // namespace equivalence
