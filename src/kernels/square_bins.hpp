// Exact sums of squares: per exponent of the terms an integer sum of mantissas, folded into an ExactSum.
#pragma once

#include "kernels/convert.hpp"
#include "kernels/exact_sum.hpp"
#include "kernels/launch.hpp"
#include "kernels/limbs.hpp"

namespace gemini::kernels {

constexpr std::int64_t kSquareBlock = 65536;  // the most terms a bin takes: 2^48 * 2^16 fits 64 bits

template <class T>
struct Layout;
template <>
struct Layout<float> {
  static constexpr int kMantissaBits = 23, kExponentBits = 8;
  KOKKOS_FORCEINLINE_FUNCTION static std::uint32_t bits(float x) { return bits_of(x); }
};
template <>
struct Layout<Half> {
  static constexpr int kMantissaBits = 10, kExponentBits = 5;
  KOKKOS_FORCEINLINE_FUNCTION static std::uint32_t bits(Half x) { return x.bits; }
};
template <>
struct Layout<BFloat16> {
  static constexpr int kMantissaBits = 7, kExponentBits = 8;
  KOKKOS_FORCEINLINE_FUNCTION static std::uint32_t bits(BFloat16 x) { return x.bits; }
};

// Types whose squared mantissas leave room in 64 bits: the sum is formed from the integers themselves.
template <class T>
class SquareBins {
 public:
  static constexpr int kLanes = 4;  // neighbours often share an exponent: their additions must not wait

  KOKKOS_FORCEINLINE_FUNCTION void add(int lane, T x) {
    const std::uint32_t bits = Layout<T>::bits(x);
    const std::uint32_t exponent = (bits >> kMantissaBits) & kLast;
    const std::uint32_t fraction = bits & ((1u << kMantissaBits) - 1u);
    const std::uint64_t mantissa = fraction | (exponent != 0 ? 1u << kMantissaBits : 0u);
    bins_[lane][exponent] += exponent == kLast ? 1u : mantissa * mantissa;  // the last counts inf and NaN
  }

  template <class AddTo>
  KOKKOS_FORCEINLINE_FUNCTION void fold(const AddTo& add_to) const {
    for (std::uint32_t exponent = 0; exponent <= kLast; ++exponent) {
      std::uint64_t total = 0;
      for (int lane = 0; lane < kLanes; ++lane) total += bins_[lane][exponent];
      if (total == 0) continue;
      if (exponent == kLast) {
        add_to(kNonFiniteLimb, static_cast<std::int64_t>(total));
      } else {
        const int unit = static_cast<int>(exponent == 0 ? 1 : exponent) - kBias - kMantissaBits;
        spread(total, 2 * unit + 1074, add_to);
      }
    }
  }

 private:
  static constexpr int kMantissaBits = Layout<T>::kMantissaBits;
  static constexpr std::uint32_t kLast = (1u << Layout<T>::kExponentBits) - 1u;
  static constexpr int kBias = static_cast<int>(kLast / 2);
  std::uint64_t bins_[kLanes][kLast + 1] = {};
};

// Squares of doubles are rounded to double first; their mantissas are summed in two halves.
template <>
class SquareBins<double> {
 public:
  static constexpr int kLanes = 1;

  KOKKOS_FORCEINLINE_FUNCTION void add(int, double x) {
    const std::uint64_t bits = bits_of(x * x) & 0x7fffffffffffffffu;
    const auto exponent = static_cast<std::uint32_t>(bits >> 52);
    const std::uint64_t mantissa = (bits & 0xfffffffffffffu) | (exponent != 0 ? std::uint64_t{1} << 52 : 0u);
    Bin& bin = bins_[exponent];
    bin.low += exponent == kLast ? 1u : mantissa & kLimbMask;
    bin.high += mantissa >> kLimbBits;
  }

  template <class AddTo>
  KOKKOS_FORCEINLINE_FUNCTION void fold(const AddTo& add_to) const {
    for (std::uint32_t exponent = 0; exponent < kLast; ++exponent) {
      const Bin& bin = bins_[exponent];
      const int position = static_cast<int>(exponent == 0 ? 1 : exponent) - 1;
      if (bin.low != 0) spread(bin.low, position, add_to);
      if (bin.high != 0) spread(bin.high, position + kLimbBits, add_to);
    }
    if (bins_[kLast].low != 0) add_to(kNonFiniteLimb, static_cast<std::int64_t>(bins_[kLast].low));
  }

 private:
  static constexpr std::uint32_t kLast = 0x7ff;
  struct Bin {
    std::uint64_t low = 0, high = 0;
  };
  Bin bins_[kLast + 1];
};

template <class T, class Load>
struct SquareBlock {
  Load load;
  std::int64_t* limbs;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    constexpr int kLanes = SquareBins<T>::kLanes;
    SquareBins<T> bins;
    std::int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) bins.add(lane, load(i + lane));
    }
    for (; i < end; ++i) bins.add(0, load(i));
    bins.fold([limbs = limbs](int limb, std::int64_t part) { Kokkos::atomic_add(limbs + limb, part); });
  }
};

// Adds load(i)^2 for i in [0, count); load returns T. A block changes a limb by less than 2^40.
template <class T, class Load>
void add_squares_of(std::int64_t count, const Load& load, ExactSum& sum) {
  sum.normalise();
  for_blocks(count, kSquareBlock, SquareBlock<T, Load>{load, sum.limbs().data()});
  sum.normalise();
}

}  // namespace gemini::kernels
