#include <cmath>

#include "kernels/reference/reference.hpp"

namespace gemini::reference {
namespace {

using kernels::Hyper;
using kernels::Optimizer;
using kernels::Piece;

double to_the(double base, std::int64_t n) {
  if (n == 0) return 1.0;
  if (n % 2 != 0) return to_the(base, n - 1) * base;
  const double root = to_the(base, n / 2);
  return root * root;
}

// One element; F is float or double. c(x) is a constant: formed in double, rounded once.
template <class F>
struct Element {
  F w, g, s1, s2;
  static F c(double x) { return static_cast<F>(x); }

  void moments(const Hyper& h) {
    const F old1 = c(h.beta1) * s1, new1 = c(1.0 - h.beta1) * g;
    s1 = old1 + new1;
    const F scaled = c(1.0 - h.beta2) * g;
    const F old2 = c(h.beta2) * s2, new2 = scaled * g;
    s2 = old2 + new2;
  }
  void adam_step(const Hyper& h, std::int64_t t) {
    moments(h);
    const F root = std::sqrt(s2) / c(std::sqrt(1.0 - to_the(h.beta2, t)));
    const F numerator = c(h.lr / (1.0 - to_the(h.beta1, t))) * s1;
    const F denominator = root + c(h.eps);
    w = w - numerator / denominator;
  }
  void decay(const Hyper& h) { w = w * c(1.0 - h.lr * h.weight_decay); }
  void l2(const Hyper& h) {
    const F term = c(h.weight_decay) * w;
    g = g + term;
  }
  void sgd(const Hyper& h, std::int64_t t) {
    l2(h);
    F direction = g;
    if (h.momentum != 0.0) {
      const F kept = c(h.momentum) * s1;
      s1 = t == 1 ? g : kept + g;
      const F beyond = c(h.momentum) * s1;
      direction = h.nesterov ? g + beyond : s1;
    }
    const F change = c(h.lr) * direction;
    w = w - change;
  }
  void lion(const Hyper& h) {
    const F kept = c(h.beta1) * s1, fresh = c(1.0 - h.beta1) * g;
    const F direction = kept + fresh;
    decay(h);
    if (direction > 0) w = w - c(h.lr);
    if (direction < 0) w = w + c(h.lr);
    const F kept2 = c(h.beta2) * s1, fresh2 = c(1.0 - h.beta2) * g;
    s1 = kept2 + fresh2;
  }
  F lamb_update(const Hyper& h, std::int64_t t) const {
    const F m = s1 / c(1.0 - to_the(h.beta1, t));
    const F v = s2 / c(1.0 - to_the(h.beta2, t));
    const F ratio = m / (std::sqrt(v) + c(h.eps));
    const F term = c(h.weight_decay) * w;
    return ratio + term;
  }
};

// Runs change(element) over the piece and stores what it became.
template <class F, class Change>
void over(const Piece& piece, Change change) {
  F* const s1 = static_cast<F*>(piece.state1);
  F* const s2 = static_cast<F*>(piece.state2);
  for (std::int64_t i = 0; i < piece.count; ++i) {
    const F grad = static_cast<const F*>(piece.grad)[i];
    Element<F> e{static_cast<F>(load(piece.master_type, piece.master, i)),
                 grad * static_cast<F>(piece.grad_factor), s1 != nullptr ? s1[i] : F(0),
                 s2 != nullptr ? s2[i] : F(0)};
    change(e);
    if (s1 != nullptr) s1[i] = e.s1;
    if (s2 != nullptr) s2[i] = e.s2;
    store(piece.master_type, piece.master, i, e.w);
    if (piece.compute_copy != nullptr) {
      store(piece.compute_type, piece.compute_copy, i, load(piece.master_type, piece.master, i));
    }
  }
}

template <class Change>
void dispatch(const Piece& piece, Change change) {
  if (wide(piece.master_type) == DType::f64) {
    over<double>(piece, change);
  } else {
    over<float>(piece, change);
  }
}

}  // namespace

void update(Optimizer optimizer, const Hyper& h, std::int64_t t, const Piece& piece) {
  dispatch(piece, [&](auto& e) {
    switch (optimizer) {
      case Optimizer::adamw:
        e.decay(h);
        e.adam_step(h, t);
        break;
      case Optimizer::adam:
        e.l2(h);
        e.adam_step(h, t);
        break;
      case Optimizer::sgd: e.sgd(h, t); break;
      case Optimizer::lion: e.lion(h); break;
      case Optimizer::lamb: break;
    }
  });
}

void lamb_moments(const Hyper& h, std::int64_t t, const Piece& piece, ExactSum& weight_squares,
                  ExactSum& update_squares) {
  Piece master_only = piece;
  master_only.compute_copy = nullptr;
  dispatch(master_only, [&](auto& e) {
    e.moments(h);
    const double w = static_cast<double>(e.w), r = static_cast<double>(e.lamb_update(h, t));
    weight_squares.add(w * w);
    update_squares.add(r * r);
  });
}

void lamb_apply(const Hyper& h, std::int64_t t, double ratio, const Piece& piece) {
  dispatch(piece, [&](auto& e) {
    const auto change = e.c(h.lr * ratio) * e.lamb_update(h, t);
    e.w = e.w - change;
  });
}

}  // namespace gemini::reference
