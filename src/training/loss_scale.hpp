// The factor on the loss gradient that keeps 16-bit gradients in range.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gemini {

struct LossScaleRules {
  double minimum, maximum, growth_factor, backoff_factor;
  std::int64_t growth_interval, hysteresis;
};

class LossScale {
 public:
  static LossScale fixed(double scale) { return LossScale(scale, false, 0); }
  static LossScale dynamic(double initial, std::int64_t hysteresis) {
    return LossScale(initial, true, hysteresis);
  }

  [[nodiscard]] double value() const { return scale_; }
  [[nodiscard]] bool is_dynamic() const { return dynamic_; }

  // After the rules changed.
  void apply(const LossScaleRules& rules) {
    if (dynamic_) scale_ = std::clamp(scale_, rules.minimum, rules.maximum);
  }

  // After every step. Once the hysteresis is used up each overflow backs off, until the scale grows again.
  void update(bool overflow, const LossScaleRules& rules) {
    if (!dynamic_) return;
    if (overflow) {
      clean_steps_ = 0;
      overflows_left_ = std::max<std::int64_t>(0, std::min(overflows_left_, rules.hysteresis) - 1);
      if (overflows_left_ == 0) scale_ = std::max(rules.minimum, scale_ * rules.backoff_factor);
      return;
    }
    if (++clean_steps_ < rules.growth_interval) return;
    clean_steps_ = 0;
    overflows_left_ = rules.hysteresis;
    scale_ = std::min(rules.maximum, scale_ * rules.growth_factor);
  }

 private:
  LossScale(double scale, bool dynamic, std::int64_t hysteresis)
      : scale_(scale), dynamic_(dynamic), overflows_left_(hysteresis) {}

  double scale_;
  bool dynamic_;
  std::int64_t overflows_left_;
  std::int64_t clean_steps_ = 0;
};

}  // namespace gemini
