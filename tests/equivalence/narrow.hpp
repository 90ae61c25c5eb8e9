// 16-bit floats by their definition: doubles that are values of the format, and their bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "gemini.h"

namespace equivalence {

struct Format {
  int exponent_min, exponent_max, mantissa_bits;
};
inline Format format_of(gemini_dtype_t type) {
  return type == GEMINI_F16 ? Format{-14, 15, 10} : Format{-126, 127, 7};
}

// x rounded to nearest even to a value of the type.
inline double rounded(gemini_dtype_t type, double x) {
  if (type == GEMINI_F64 || x == 0 || !std::isfinite(x)) return x;
  if (type == GEMINI_F32) return static_cast<float>(x);
  const Format f = format_of(type);
  const int exponent = std::max(std::ilogb(x), f.exponent_min);
  const double near =
      std::ldexp(std::nearbyint(std::ldexp(x, f.mantissa_bits - exponent)), exponent - f.mantissa_bits);
  const double largest = std::ldexp(2 - std::ldexp(1.0, -f.mantissa_bits), f.exponent_max);
  return std::fabs(near) > largest ? std::copysign(std::numeric_limits<double>::infinity(), x) : near;
}

inline std::uint16_t bits_of(gemini_dtype_t type, double value) {
  const Format f = format_of(type);
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const int bias = f.exponent_max;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isnan(value)) return 0x7FFF;
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | (2 * bias + 1) << f.mantissa_bits);
  const int exponent = std::max(std::ilogb(magnitude), f.exponent_min);
  const auto units = static_cast<int>(std::ldexp(magnitude, f.mantissa_bits - exponent));
  const int hidden = 1 << f.mantissa_bits;
  const int biased = units < hidden ? 0 : exponent + bias;
  return static_cast<std::uint16_t>(sign | biased << f.mantissa_bits | (units & (hidden - 1)));
}

inline double value_of(gemini_dtype_t type, std::uint16_t bits) {
  const Format f = format_of(type);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int hidden = 1 << f.mantissa_bits;
  const int biased = (bits & 0x7FFF) >> f.mantissa_bits;
  const int units = bits & (hidden - 1);
  if (biased == 2 * f.exponent_max + 1) return units != 0 ? std::nan("") : sign * INFINITY;
  if (biased == 0) return sign * std::ldexp(units, f.exponent_min - f.mantissa_bits);
  return sign * std::ldexp(units + hidden, biased - f.exponent_max - f.mantissa_bits);
}

// Element i of an array of the type.
inline double load(gemini_dtype_t type, const void* values, std::int64_t i) {
  if (type == GEMINI_F64) return static_cast<const double*>(values)[i];
  if (type == GEMINI_F32) return static_cast<const float*>(values)[i];
  return value_of(type, static_cast<const std::uint16_t*>(values)[i]);
}
inline void store(gemini_dtype_t type, void* values, std::int64_t i, double value) {
  if (type == GEMINI_F64) static_cast<double*>(values)[i] = value;
  if (type == GEMINI_F32) static_cast<float*>(values)[i] = static_cast<float>(value);
  if (type == GEMINI_F16 || type == GEMINI_BF16)
    static_cast<std::uint16_t*>(values)[i] = bits_of(type, rounded(type, value));
}

}  // namespace equivalence
