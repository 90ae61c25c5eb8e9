// AdamW, Adam and SGD on replicated arrays, written from the contract's formulas alone. One sequence of
// IEEE operations per element, constants formed in double and rounded once.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

// base^exponent by squaring, from the highest bit down.
inline double power(double base, long long exponent) {
  double result = 1;
  for (int bit = 62; bit >= 0; --bit) {
    result *= result;
    if ((exponent >> bit & 1) != 0) result *= base;
  }
  return result;
}

struct Settings {
  std::string optimizer = "adamw";
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, momentum = 0, max_grad_norm = 0;
  int accumulate = 1;
};

template <class Real>
class DenseOptimizer {
 public:
  DenseOptimizer(const Settings& settings, std::size_t size)
      : settings_(settings), first_(size, Real(0)), second_(size, Real(0)) {}

  // step counts from 1.
  void update(std::vector<Real>& w, std::vector<Real> grad, double factor, long long step) {
    for (Real& g : grad) g *= Real(factor);
    if (settings_.optimizer == "adamw") {
      const Real decay = Real(1 - settings_.lr * settings_.weight_decay);
      for (Real& x : w) x *= decay;
    } else {
      const Real decay = Real(settings_.weight_decay);
      for (std::size_t i = 0; i < w.size(); ++i) grad[i] += decay * w[i];
    }
    if (settings_.optimizer == "sgd")
      update_sgd(w, grad, step);
    else
      update_adam(w, grad, step);
  }

 private:
  void update_sgd(std::vector<Real>& w, const std::vector<Real>& grad, long long step) {
    const Real lr = Real(settings_.lr), momentum = Real(settings_.momentum);
    for (std::size_t i = 0; i < w.size(); ++i) {
      first_[i] = step == 1 ? grad[i] : momentum * first_[i] + grad[i];
      w[i] -= lr * first_[i];
    }
  }

  void update_adam(std::vector<Real>& w, const std::vector<Real>& grad, long long step) {
    const double beta1 = settings_.beta1, beta2 = settings_.beta2;
    const Real step_size = Real(settings_.lr / (1 - power(beta1, step)));
    const Real root2 = Real(std::sqrt(1 - power(beta2, step)));
    const Real b1 = Real(beta1), rest1 = Real(1 - beta1), b2 = Real(beta2), rest2 = Real(1 - beta2);
    const Real eps = Real(settings_.eps);
    for (std::size_t i = 0; i < w.size(); ++i) {
      Real &m = first_[i], &v = second_[i];
      m = b1 * m + rest1 * grad[i];
      v = b2 * v + rest2 * grad[i] * grad[i];
      w[i] -= step_size * m / (std::sqrt(v) / root2 + eps);
    }
  }

  Settings settings_;
  std::vector<Real> first_, second_;
};
