// The arrays of one optimizer piece, twice: for the kernel and for its reference.
#pragma once

#include <memory>

#include "guarded.hpp"
#include "kernels/optimizers.hpp"

namespace gemini::test {

using kernels::Hyper;
using kernels::Optimizer;
using kernels::Piece;

struct Types {
  DType master;
  bool with_copy;
  DType copy;
};

constexpr Types kTypes[] = {{DType::f32, false, DType::f32},   {DType::f32, true, DType::f16},
                            {DType::f32, true, DType::bf16},   {DType::f32, true, DType::f32},
                            {DType::f32, true, DType::f64},    {DType::f64, false, DType::f64},
                            {DType::f64, true, DType::f32},    {DType::f16, false, DType::f16},
                            {DType::bf16, false, DType::bf16}, {DType::bf16, true, DType::bf16}};

class Arrays {
 public:
  Arrays(const Types& types, int states, std::int64_t count, std::int64_t offset)
      : types_(types),
        states_(states),
        master(types.master, count, offset),
        grad(wide(types.master), count, offset),
        state1(wide(types.master), count, offset),
        state2(wide(types.master), count, offset),
        copy(types.copy, count, 3 - offset) {
    master.random(1);
    grad.random(2, 0.1);
    if (states >= 1) state1.random(3, 0.1);
    if (states >= 2) state2.random(4, 0.01).absolute();
  }

  // Elements [begin, begin + count)
  Piece piece(std::int64_t begin, std::int64_t count, double grad_factor = 1.0) {
    return {count,
            types_.master,
            master.at(begin),
            grad.at(begin),
            grad_factor,
            states_ >= 1 ? state1.at(begin) : nullptr,
            states_ >= 2 ? state2.at(begin) : nullptr,
            types_.copy,
            types_.with_copy ? copy.at(begin) : nullptr};
  }
  Piece whole(double grad_factor = 1.0) { return piece(0, master.count(), grad_factor); }

 private:
  Types types_;
  int states_;

 public:
  Guarded master, grad, state1, state2, copy;
};

inline void expect_same(const Arrays& a, const Arrays& b) {
  EXPECT_TRUE(same(a.master, b.master)) << "master";
  EXPECT_TRUE(same(a.grad, b.grad)) << "grad";
  EXPECT_TRUE(same(a.state1, b.state1)) << "state1";
  EXPECT_TRUE(same(a.state2, b.state2)) << "state2";
  EXPECT_TRUE(same(a.copy, b.copy)) << "copy";
}

struct Case {
  const char* name;
  Optimizer optimizer;
  Hyper hyper;  // lr, beta1, beta2, eps, weight_decay, momentum, nesterov
};

constexpr Case kCases[] = {{"adamw", Optimizer::adamw, {1e-3, 0.9, 0.999, 1e-8, 0.01, 0.0, false}},
                           {"adam", Optimizer::adam, {3e-3, 0.8, 0.99, 1e-6, 0.1, 0.0, false}},
                           {"sgd", Optimizer::sgd, {0.05, 0.9, 0.999, 1e-8, 1e-4, 0.0, false}},
                           {"momentum", Optimizer::sgd, {0.05, 0.9, 0.999, 1e-8, 1e-4, 0.9, false}},
                           {"nesterov", Optimizer::sgd, {0.05, 0.9, 0.999, 1e-8, 1e-4, 0.9, true}},
                           {"lion", Optimizer::lion, {1e-4, 0.9, 0.99, 1e-8, 0.1, 0.0, false}}};

}  // namespace gemini::test
