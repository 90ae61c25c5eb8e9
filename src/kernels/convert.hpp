// Conversions of single values between the floating types, rounded to nearest even once. Selections instead
// of branches, so that loops over them vectorise; no step reads or makes a subnormal float on the way to or
// from a half, so that a caller's flush-to-zero mode does not matter there.
#pragma once

#include <Kokkos_Macros.hpp>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/float16.hpp"

namespace gemini::kernels {

// The type that arithmetic on T is done in.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

KOKKOS_FORCEINLINE_FUNCTION std::uint32_t bits_of(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

KOKKOS_FORCEINLINE_FUNCTION std::uint64_t bits_of(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

KOKKOS_FORCEINLINE_FUNCTION float float_of(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

KOKKOS_FORCEINLINE_FUNCTION double double_of(std::uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

KOKKOS_FORCEINLINE_FUNCTION Half half_of(float x) {
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const auto order = static_cast<std::int32_t>(magnitude);  // signed, as SSE2 compares only these
  // Rebias the exponent by -112 and round; a carry into the exponent is what rounding up means there.
  const std::uint32_t normal = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13;
  // Beside 0.5 the last bit of a float weighs as much as the last bit of a half: the addition rounds.
  const std::uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
  const std::uint32_t special = order > 0x7f800000 ? 0x7e00u : 0x7c00u;
  const std::uint32_t in_range = order < 0x38800000 ? subnormal : normal;
  const std::uint32_t rounded = order >= 0x47800000 ? special : in_range;
  return Half{static_cast<std::uint16_t>(((bits >> 16) & 0x8000u) | rounded)};
}

KOKKOS_FORCEINLINE_FUNCTION float float_of(Half x) {
  const std::uint32_t shifted = (x.bits & 0x7fffu) << 13;
  const std::uint32_t exponent = shifted & 0x0f800000u;
  const std::uint32_t normal = shifted + 0x38000000u;  // rebias by +112
  const std::uint32_t special = shifted + 0x70000000u;
  const std::uint32_t subnormal = bits_of(float_of(shifted + 0x38800000u) - float_of(0x38800000u));
  const std::uint32_t finite = exponent == 0 ? subnormal : normal;
  const std::uint32_t magnitude = exponent == 0x0f800000u ? special : finite;
  return float_of(((x.bits & 0x8000u) << 16) | magnitude);
}

KOKKOS_FORCEINLINE_FUNCTION BFloat16 bfloat16_of(float x) {
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet_nan = (bits >> 16) | 0x40u;
  const bool is_nan = static_cast<std::int32_t>(bits & 0x7fffffffu) > 0x7f800000;
  return BFloat16{static_cast<std::uint16_t>(is_nan ? quiet_nan : rounded)};
}

KOKKOS_FORCEINLINE_FUNCTION float float_of(BFloat16 x) {
  return float_of(static_cast<std::uint32_t>(x.bits) << 16);
}

// Rounds to odd: of the two neighbours the one whose last bit is 1. Rounding that to nearest in at least two
// bits less is rounding the double itself (S. Boldo, G. Melquiond, 2008).
KOKKOS_FORCEINLINE_FUNCTION float odd_float_of(double x) {
  const auto nearest = static_cast<float>(x);
  const auto back = static_cast<double>(nearest);
  const std::uint64_t sign_off = 0x7fffffffffffffffu;
  const bool away = double_of(bits_of(back) & sign_off) > double_of(bits_of(x) & sign_off);
  const std::uint32_t bits = bits_of(nearest);
  const std::uint32_t odd = (bits - (away ? 1u : 0u)) | 1u;
  return float_of(back == x ? bits : odd);
}

// The one conversion: from any of double, float, Half, BFloat16 to any.
template <class To, class From>
KOKKOS_FORCEINLINE_FUNCTION To convert_to(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return convert_to<To>(float_of(x));
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    float narrow;
    if constexpr (std::is_same_v<From, double>) {
      narrow = odd_float_of(x);
    } else {
      narrow = x;
    }
    if constexpr (std::is_same_v<To, Half>) {
      return half_of(narrow);
    } else {
      return bfloat16_of(narrow);
    }
  } else {
    return static_cast<To>(x);
  }
}

template <class T>
KOKKOS_FORCEINLINE_FUNCTION Wide<T> widen(T x) {
  return convert_to<Wide<T>>(x);
}

}  // namespace gemini::kernels
