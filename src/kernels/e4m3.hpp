// Conversions of single values to and from OCP e4m3: 4 exponent and 3 mantissa bits, no infinities, one NaN
// of each sign, finite magnitudes up to 448. As in convert.hpp: selections instead of branches, rounded to
// nearest even once.
#pragma once

#include "kernels/convert.hpp"

namespace gemini::kernels {

struct Float8 {
  std::uint8_t bits;
};

constexpr float kLargestFloat8 = 448.0f;

// What lies beyond the largest becomes the largest; infinities become NaN.
KOKKOS_FORCEINLINE_FUNCTION Float8 float8_of(float x) {
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const auto order = static_cast<std::int32_t>(magnitude);
  // Rebias the exponent by -120 and round; a carry into the exponent is what rounding up means there.
  const std::uint32_t normal = (magnitude + 0xc407ffffu + ((magnitude >> 20) & 1u)) >> 20;
  // Beside 2^14 the last bit of a float weighs as much as the smallest subnormal: the addition rounds.
  const std::uint32_t subnormal = bits_of(float_of(magnitude) + 0x1p14f) - 0x46800000u;
  const std::uint32_t special = order >= 0x7f800000 ? 0x7fu : 0x7eu;
  const std::uint32_t in_range = order < 0x3c800000 ? subnormal : normal;
  const std::uint32_t rounded = order > 0x43e00000 ? special : in_range;
  return Float8{static_cast<std::uint8_t>(((bits >> 24) & 0x80u) | rounded)};
}

KOKKOS_FORCEINLINE_FUNCTION float float_of(Float8 x) {
  const std::uint32_t code = x.bits & 0x7fu;
  const std::uint32_t shifted = code << 20;
  const std::uint32_t normal = shifted + 0x3c000000u;  // rebias by +120
  const std::uint32_t subnormal = bits_of(float_of(shifted + 0x3c800000u) - float_of(0x3c800000u));
  const std::uint32_t finite = code < 8u ? subnormal : normal;
  const std::uint32_t magnitude = code == 0x7fu ? 0x7fc00000u : finite;
  return float_of(((x.bits & 0x80u) << 24) | magnitude);
}

}  // namespace gemini::kernels
