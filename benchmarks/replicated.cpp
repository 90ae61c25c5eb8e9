#include "replicated.hpp"

#include <mpi.h>

#include <algorithm>
#include <cmath>

#include "kernels/kernels.hpp"
#include "kernels/optimizers.hpp"
#include "kernels/runtime.hpp"

namespace gemini_bench {

namespace kernels = gemini::kernels;
using gemini::DType;

Replicated::Replicated(std::vector<float> values, std::int64_t chunk_elems, const AdamW& rules)
    : chunk_elems_(chunk_elems),
      rules_(rules),
      values_(std::move(values)),
      gradients_(values_.size()),
      moment1_(values_.size()),
      moment2_(values_.size()) {
  MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  kernels::start();
  std::size_t at = 0;
  for (const auto& operation : Transformer::operations()) {
    weights_of_.emplace_back();
    gradients_of_.emplace_back();
    for (const Tensor& tensor : operation) {
      weights_of_.back().push_back(values_.data() + at);
      gradients_of_.back().push_back(gradients_.data() + at);
      at += static_cast<std::size_t>(tensor.elems);
    }
  }
}

void Replicated::add_over_ranks(std::int64_t first) {
  while (added_from_ > first && (added_from_ - chunk_elems_ >= first || first == 0)) {
    const std::int64_t count = std::min(chunk_elems_, added_from_);
    added_from_ -= count;
    MPI_Allreduce(MPI_IN_PLACE, gradients_.data() + added_from_, static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  }
}

double Replicated::update() {
  const auto count = static_cast<std::int64_t>(values_.size());
  gemini::ExactSum squares;
  kernels::add_squares(DType::f32, gradients_.data(), count, squares);
  const double norm = std::sqrt(squares.value()) / ranks_;
  const double clip = std::min(1.0, rules_.max_grad_norm / (norm + 1e-6));
  const kernels::Hyper hyper{rules_.lr, 0.9, 0.999, 1e-8, rules_.weight_decay, 0, false};
  kernels::update(kernels::Optimizer::adamw, hyper, ++steps_,
                  {count, DType::f32, values_.data(), gradients_.data(), clip / ranks_, moment1_.data(),
                   moment2_.data(), DType::f32, nullptr});
  return norm;
}

double Replicated::step(Transformer& network) {
  const auto operations = static_cast<int>(weights_of_.size());
  for (int i = 0; i < operations; ++i) network.forward(i, weights_of_[static_cast<std::size_t>(i)]);
  added_from_ = static_cast<std::int64_t>(values_.size());
  for (int i = operations - 1; i >= 0; --i) {
    const std::vector<float*>& gradients = gradients_of_[static_cast<std::size_t>(i)];
    network.backward(i, weights_of_[static_cast<std::size_t>(i)], gradients);
    add_over_ranks(gradients.front() - gradients_.data());
  }
  return update();
}

}  // namespace gemini_bench
