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

namespace {

void add_in_rank_order(float* values, int count, int ranks) {
  std::vector<float> all(static_cast<std::size_t>(count) * static_cast<std::size_t>(ranks));
  MPI_Allgather(values, count, MPI_FLOAT, all.data(), count, MPI_FLOAT, MPI_COMM_WORLD);
  std::copy_n(all.data(), count, values);
  for (int rank = 1; rank < ranks; ++rank)
    for (int i = 0; i < count; ++i) values[i] += all[static_cast<std::size_t>(rank * count + i)];
}

}  // namespace

void Replicated::add_over_ranks(std::int64_t first, bool in_rank_order) {
  while (added_from_ > first && (added_from_ - chunk_elems_ >= first || first == 0)) {
    const std::int64_t count = std::min(chunk_elems_, added_from_);
    added_from_ -= count;
    float* piece = gradients_.data() + added_from_;
    if (in_rank_order)
      add_in_rank_order(piece, static_cast<int>(count), ranks_);
    else
      MPI_Allreduce(MPI_IN_PLACE, piece, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
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

double Replicated::step(Transformer& network, bool in_rank_order) {
  const auto operations = static_cast<int>(weights_of_.size());
  for (int i = 0; i < operations; ++i) network.forward(i, weights_of_[static_cast<std::size_t>(i)]);
  added_from_ = static_cast<std::int64_t>(values_.size());
  for (int i = operations - 1; i >= 0; --i) {
    const std::vector<float*>& gradients = gradients_of_[static_cast<std::size_t>(i)];
    network.backward(i, weights_of_[static_cast<std::size_t>(i)], gradients);
    add_over_ranks(gradients.front() - gradients_.data(), in_rank_order);
  }
  return update();
}

}  // namespace gemini_bench
