// Optimizer updates of one contiguous piece of a shard.
//
// Constants are formed in double and rounded to the compute type once; the arithmetic is done in
// wide(master type). The gradient is of wide(master type) and is multiplied by grad_factor (unscaling and
// clipping in one) before use; a factor of exactly 1 changes nothing.
#pragma once

#include <cstdint>

#include "base/dtype.hpp"
#include "kernels/exact_sum.hpp"

namespace gemini::kernels {

enum class Optimizer { adamw, adam, sgd, lion, lamb };

// How many state arrays of wide(master type) the optimizer keeps per parameter.
[[nodiscard]] int state_count(Optimizer optimizer, double momentum);

struct Hyper {
  double lr;  // the parameter's own: lr * lr_scale
  double beta1, beta2, eps, weight_decay, momentum;
  bool nesterov;
};

struct Piece {
  std::int64_t count;
  DType master_type;  // f64 or f32; f16 or bf16 where the parameter is its own master
  void* master;
  const void* grad;
  double grad_factor;
  void* state1;        // Adam, AdamW, LAMB: m; SGD: momentum buffer; Lion: m. May be NULL where not kept
  void* state2;        // Adam, AdamW, LAMB: v
  DType compute_type;  // of the copy the operations read
  void* compute_copy;  // NULL where the master is that copy
};

// Updates master and states and writes the compute copy (rounded to nearest even). step is the parameter's
// own count of updates including this one, from 1. Formulas: docs/formulas.md. LAMB is not updated here.
void update(Optimizer optimizer, const Hyper& hyper, std::int64_t step, const Piece& piece);

// LAMB (You et al. 2020, algorithm 2) needs the norms of whole parameters between two passes.
// Pass 1: moments are updated, |w|^2 and |r|^2 of this piece are added exactly, where
// r = (m/(1-b1^t)) / (sqrt(v/(1-b2^t)) + eps) + weight_decay * w.
void lamb_moments(const Hyper& hyper, std::int64_t step, const Piece& piece, ExactSum& weight_squares,
                  ExactSum& update_squares);
// Pass 2: w -= lr * ratio * r (r formed again from the moments), compute copy written.
// ratio = |w| / |r|, 1 where either norm is 0.
void lamb_apply(const Hyper& hyper, std::int64_t step, double ratio, const Piece& piece);

}  // namespace gemini::kernels
