// A sum of doubles without rounding: the same for every order and every division into parts.
//
// The value is kept as a fixed-point number in 64-bit limbs of 32 bits each (R. Neal, "Fast exact summation
// using small and large superaccumulators", 2015). Limbs of normalised sums can be added over ranks as
// integers.
#pragma once

#include <array>
#include <cstdint>

namespace gemini {

class ExactSum {
 public:
  static constexpr int kLimbs = 67;

  // Adds a value; infinities and NaN are counted apart and make value() not finite.
  void add(double value) noexcept;
  void add(const ExactSum& other) noexcept;

  // Carries are taken up, so that up to 2^30 normalised sums may be added limb by limb.
  void normalise() noexcept;
  [[nodiscard]] const std::array<std::int64_t, kLimbs>& limbs() const noexcept { return limbs_; }
  // For writing: whatever is added to the limbs, the next add() takes up the carries first.
  [[nodiscard]] std::array<std::int64_t, kLimbs>& limbs() noexcept {
    adds_ = kLimbsWritten;
    return limbs_;
  }

  // The sum rounded to double, to nearest even; a pure function of the exact sum.
  [[nodiscard]] double value() const noexcept;
  [[nodiscard]] bool finite() const noexcept { return limbs_[kLimbs - 1] == 0; }

 private:
  static constexpr std::int64_t kLimbsWritten = std::int64_t{1} << 62;

  // Limbs 0 .. kLimbs - 2 hold the number, the last counts terms that were not finite.
  std::array<std::int64_t, kLimbs> limbs_{};
  std::int64_t adds_ = 0;  // since the carries were taken up
};

}  // namespace gemini
