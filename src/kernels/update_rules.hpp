// The optimizers' formulas (docs/formulas.md) for one element in the compute type W. Every operator() is one
// fixed sequence of IEEE operations; constants are formed in double and rounded once.
#pragma once

#include <Kokkos_Macros.hpp>
#include <cmath>
#include <cstdint>

#include "kernels/optimizers.hpp"

namespace gemini::kernels {

// base^exponent by squaring: unlike std::pow the same bits whatever the mathematical library.
inline double power(double base, std::int64_t exponent) {
  double result = 1.0;
  for (int bit = 62; bit >= 0; --bit) {
    result = result * result;
    if ((exponent >> bit & 1) != 0) result = result * base;
  }
  return result;
}

// m and v of Adam and its relatives
template <class W>
struct Moments {
  W beta1, rest1, beta2, rest2;

  explicit Moments(const Hyper& h)
      : beta1(static_cast<W>(h.beta1)),
        rest1(static_cast<W>(1.0 - h.beta1)),
        beta2(static_cast<W>(h.beta2)),
        rest2(static_cast<W>(1.0 - h.beta2)) {}

  KOKKOS_FORCEINLINE_FUNCTION void operator()(W g, W& m, W& v) const {
    m = beta1 * m + rest1 * g;
    v = beta2 * v + (rest2 * g) * g;
  }
};

template <class W>
struct AdamStep {
  Moments<W> moments;
  W step_size, root2, eps;

  AdamStep(const Hyper& h, std::int64_t step)
      : moments(h),
        step_size(static_cast<W>(h.lr / (1.0 - power(h.beta1, step)))),
        root2(static_cast<W>(std::sqrt(1.0 - power(h.beta2, step)))),
        eps(static_cast<W>(h.eps)) {}

  KOKKOS_FORCEINLINE_FUNCTION W operator()(W w, W g, W& m, W& v) const {
    moments(g, m, v);
    return w - (step_size * m) / (std::sqrt(v) / root2 + eps);
  }
};

// I. Loshchilov, F. Hutter, 2019: decay apart from the gradient
template <class W>
struct AdamWRule {
  static constexpr int kStates = 2;
  W decay;
  AdamStep<W> adam;

  AdamWRule(const Hyper& h, std::int64_t step)
      : decay(static_cast<W>(1.0 - h.lr * h.weight_decay)), adam(h, step) {}

  KOKKOS_FORCEINLINE_FUNCTION W operator()(W w, W g, W& m, W& v) const { return adam(w * decay, g, m, v); }
};

// D. Kingma, J. Ba, 2015, with L2 decay in the gradient
template <class W>
struct AdamRule {
  static constexpr int kStates = 2;
  W weight_decay;
  AdamStep<W> adam;

  AdamRule(const Hyper& h, std::int64_t step) : weight_decay(static_cast<W>(h.weight_decay)), adam(h, step) {}

  KOKKOS_FORCEINLINE_FUNCTION W operator()(W w, W g, W& m, W& v) const {
    return adam(w, g + weight_decay * w, m, v);
  }
};

template <class W>
struct PlainSgdRule {
  static constexpr int kStates = 0;
  W lr, weight_decay;

  PlainSgdRule(const Hyper& h, std::int64_t)
      : lr(static_cast<W>(h.lr)), weight_decay(static_cast<W>(h.weight_decay)) {}

  KOKKOS_FORCEINLINE_FUNCTION W operator()(W w, W g, W&, W&) const { return w - lr * (g + weight_decay * w); }
};

template <class W>
struct MomentumSgdRule {
  static constexpr int kStates = 1;
  W lr, weight_decay, momentum;
  bool first, nesterov;

  MomentumSgdRule(const Hyper& h, std::int64_t step)
      : lr(static_cast<W>(h.lr)),
        weight_decay(static_cast<W>(h.weight_decay)),
        momentum(static_cast<W>(h.momentum)),
        first(step == 1),
        nesterov(h.nesterov) {}

  KOKKOS_FORCEINLINE_FUNCTION W operator()(W w, W g, W& buffer, W&) const {
    const W decayed = g + weight_decay * w;
    const W later = momentum * buffer + decayed;
    buffer = first ? decayed : later;
    const W ahead = decayed + momentum * buffer;
    return w - lr * (nesterov ? ahead : buffer);
  }
};

// X. Chen et al., 2023, "Symbolic discovery of optimization algorithms", program 1
template <class W>
struct LionRule {
  static constexpr int kStates = 1;
  W lr, decay, beta1, rest1, beta2, rest2;

  LionRule(const Hyper& h, std::int64_t)
      : lr(static_cast<W>(h.lr)),
        decay(static_cast<W>(1.0 - h.lr * h.weight_decay)),
        beta1(static_cast<W>(h.beta1)),
        rest1(static_cast<W>(1.0 - h.beta1)),
        beta2(static_cast<W>(h.beta2)),
        rest2(static_cast<W>(1.0 - h.beta2)) {}

  KOKKOS_FORCEINLINE_FUNCTION W operator()(W w, W g, W& m, W&) const {
    const W direction = beta1 * m + rest1 * g;
    const W positive = direction > W(0) ? lr : W(0);
    const W signed_lr = direction < W(0) ? -lr : positive;
    m = beta2 * m + rest2 * g;
    return w * decay - signed_lr;
  }
};

// r of Y. You et al., 2020, algorithm 2
template <class W>
struct LambUpdate {
  W bias1, bias2, eps, weight_decay;

  LambUpdate(const Hyper& h, std::int64_t step)
      : bias1(static_cast<W>(1.0 - power(h.beta1, step))),
        bias2(static_cast<W>(1.0 - power(h.beta2, step))),
        eps(static_cast<W>(h.eps)),
        weight_decay(static_cast<W>(h.weight_decay)) {}

  KOKKOS_FORCEINLINE_FUNCTION W operator()(W w, W m, W v) const {
    return (m / bias1) / (std::sqrt(v / bias2) + eps) + weight_decay * w;
  }
};

}  // namespace gemini::kernels
