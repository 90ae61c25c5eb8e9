#include "kernels/float8.hpp"

#include <algorithm>
#include <limits>

#include "kernels/e4m3.hpp"
#include "kernels/launch.hpp"

namespace gemini::kernels {
namespace {

// Magnitudes of IEEE values are ordered as their bits are as integers, infinity and NaN at the end.
KOKKOS_FORCEINLINE_FUNCTION std::int32_t finite_magnitude(float x) {
  const auto bits = static_cast<std::int32_t>(bits_of(x) & 0x7fffffffu);
  return bits < 0x7f800000 ? bits : 0;
}
KOKKOS_FORCEINLINE_FUNCTION std::int64_t finite_magnitude(double x) {
  const auto bits = static_cast<std::int64_t>(bits_of(x) & 0x7fffffffffffffffu);
  return bits < 0x7ff0000000000000 ? bits : 0;
}
KOKKOS_FORCEINLINE_FUNCTION float from_magnitude(std::int32_t bits) {
  return float_of(static_cast<std::uint32_t>(bits));
}
KOKKOS_FORCEINLINE_FUNCTION double from_magnitude(std::int64_t bits) {
  return double_of(static_cast<std::uint64_t>(bits));
}

// Rounded down, so that 448 scales are no more than the largest: the product of 24 and 3 bits is exact in
// double. A subnormal scale would have too few bits, and be none where subnormals are flushed.
KOKKOS_FORCEINLINE_FUNCTION float scale_for(double largest) {
  constexpr double kMost = static_cast<double>(kLargestFloat8);
  constexpr float kSmallestScale = std::numeric_limits<float>::min();
  constexpr float kLargestScale = std::numeric_limits<float>::max();
  const double quotient = largest / kMost;
  if (largest == 0.0) return 0.0f;
  if (quotient <= static_cast<double>(kSmallestScale)) return kSmallestScale;
  if (quotient >= static_cast<double>(kLargestScale)) return kLargestScale;
  const auto nearest = static_cast<float>(quotient);
  const bool above = static_cast<double>(nearest) * kMost > largest;
  return float_of(bits_of(nearest) - (above ? 1u : 0u));
}

KOKKOS_FORCEINLINE_FUNCTION Float8 code_of(float quotient) {
  return float8_of(quotient);
}
KOKKOS_FORCEINLINE_FUNCTION Float8 code_of(double quotient) {
  return float8_of(odd_float_of(quotient));
}

template <class T>
struct Encode {
  const T* x;
  std::uint8_t* codes;
  float* scales;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    const T* const values = x;
    std::uint8_t* const to = codes;
    decltype(finite_magnitude(Wide<T>())) most = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto magnitude = finite_magnitude(widen(values[i]));
      most = magnitude > most ? magnitude : most;
    }
    const float scale = scale_for(static_cast<double>(from_magnitude(most)));
    scales[begin / kFloat8Block] = scale;
    const auto divisor = static_cast<Wide<T>>(scale == 0.0f ? 1.0f : scale);
    GEMINI_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) to[i] = code_of(widen(values[i]) / divisor).bits;
  }
};

template <class T>
struct Decode {
  const std::uint8_t* codes;
  const float* scales;
  T* x;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    const std::uint8_t* const from = codes;
    T* const values = x;
    const auto scale = static_cast<Wide<T>>(scales[begin / kFloat8Block]);
    GEMINI_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i)
      values[i] = convert_to<T>(static_cast<Wide<T>>(float_of(Float8{from[i]})) * scale);
  }
};

}  // namespace

void encode_float8(DType type, const void* x, std::int64_t count, void* encoded) {
  auto* codes = static_cast<std::uint8_t*>(encoded);
  std::fill(codes + count, codes + float8_code_bytes(count), std::uint8_t{0});
  auto* scales = reinterpret_cast<float*>(codes + float8_code_bytes(count));
  with_floating(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_blocks(count, kFloat8Block, Encode<T>{static_cast<const T*>(x), codes, scales});
  });
}

void decode_float8(const void* encoded, std::int64_t count, DType type, void* x) {
  const auto* codes = static_cast<const std::uint8_t*>(encoded);
  const auto* scales = reinterpret_cast<const float*>(codes + float8_code_bytes(count));
  with_floating(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_blocks(count, kFloat8Block, Decode<T>{codes, scales, static_cast<T*>(x)});
  });
}

}  // namespace gemini::kernels
