// The model that is trained: twelve parameters of odd sizes, and gradients that depend on the values read, so
// that an error in one place spreads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/test_context.hpp"

namespace equivalence {

struct Tensor {
  std::string name;
  std::int64_t elems;
  gemini_dtype_t dtype;
  gemini_dtype_t grad_dtype;
  bool frozen = false;
  double lr_scale = 1;
  double weight_decay = -1;  // -1: the context's
};

// What is computed: the same numbers are expected of every way to run it.
struct Problem {
  std::string name;
  gemini_test::KeyValues options;
  std::vector<gemini_dtype_t> dtypes;  // dealt out in turn
  int accumulate = 1;
};

// How it is run.
struct Variant {
  std::string name;
  gemini_test::KeyValues options;
  enum Residence { sharded, some_resident, all_resident } residence = sharded;
  bool declare_ready = false;
  int ranks_per_node = 0;  // 0: all
};

struct Result {
  std::vector<std::vector<double>> values;  // masters, by tensor
  std::vector<double> norms;                // by step
  std::vector<int> skipped;
  std::vector<int> updated;
};

constexpr int kSteps = 12;
constexpr int kTensors = 12;
constexpr int kTiedTensor = 3;  // two operations add to its gradient

inline std::vector<Tensor> tensors_of(const Problem& problem) {
  const std::vector<std::int64_t> sizes = {7, 1, 129, 33, 64, 500, 15, 17, 0, 257, 3, 90};
  std::vector<Tensor> tensors;
  for (std::size_t t = 0; t < sizes.size(); ++t) {
    const gemini_dtype_t dtype = problem.dtypes[t % problem.dtypes.size()];
    tensors.push_back({"t" + std::to_string(t), sizes[t], dtype, dtype});
  }
  tensors[4].frozen = true;
  tensors[1].lr_scale = 0.5;
  tensors[6].weight_decay = 0.25;
  if (tensors[9].dtype == GEMINI_F16 || tensors[9].dtype == GEMINI_BF16) tensors[9].grad_dtype = GEMINI_F32;
  return tensors;
}

inline double initial_value(int tensor, std::int64_t i) {
  return static_cast<double>((tensor * 37 + i * 11) % 64 - 32) / 64;
}

// One operation: the gradient of `own` is made of its values and those of `other`.
struct Step {
  int own, other;
};
inline const std::vector<Step>& operations() {
  static const std::vector<Step> all = [] {
    std::vector<Step> made;
    for (int t = 0; t < kTensors; ++t) made.push_back({t, (t + 1) % kTensors});
    made.push_back({kTiedTensor, 9});
    return made;
  }();
  return all;
}

struct When {
  int step, micro_batch, rank;
};

// Whether the rank asks for the gradient; tensor 7 is used by nobody in every third step.
inline bool asks(int tensor, const When& when) {
  if (tensor == 7 && when.step % 3 == 1) return false;
  return (tensor + when.rank + when.step + when.micro_batch) % 4 != 0;
}

// own_value, other_value: what the operation read.
inline double gradient_value(int tensor, std::int64_t i, const When& when, double own_value,
                             double other_value, double loss_scale) {
  const auto key = static_cast<std::uint32_t>(tensor * 7919 + i * 104729 + when.step * 1299709 +
                                              when.micro_batch * 15485863 + when.rank * 32452843);
  const double noise = static_cast<double>(key * 2654435761U >> 12) / 524288 - 1;
  return loss_scale * ((own_value * 0.5 + other_value * 0.25) + noise * 0.125);
}

Result train_with_library(const Problem& problem, const Variant& variant);
// Adds up the gradients of each node, then of the nodes.
Result train_densely(const Problem& problem, int ranks, int ranks_per_node);

}  // namespace equivalence
