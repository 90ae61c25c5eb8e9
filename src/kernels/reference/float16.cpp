#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/reference.hpp"

namespace gemini::reference {

std::uint16_t encode16(double value, int exponent_bits, int mantissa_bits) {
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const int infinity = ((1 << exponent_bits) - 1) << mantissa_bits;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | infinity | 1 << (mantissa_bits - 1));
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
  const double magnitude = std::fabs(value);
  const int smallest = 2 - (1 << (exponent_bits - 1));
  const int exponent = magnitude == 0.0 ? smallest : std::max(std::ilogb(magnitude), smallest);
  // The mantissa with its leading bit, which adds 1 to the exponent field of normal numbers.
  const double mantissa = std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent));
  if (exponent - smallest >= (1 << exponent_bits)) return static_cast<std::uint16_t>(sign | infinity);
  const int bits = ((exponent - smallest) << mantissa_bits) + static_cast<int>(mantissa);
  return static_cast<std::uint16_t>(sign | std::min(bits, infinity));
}

double decode16(std::uint16_t bits, int exponent_bits, int mantissa_bits) {
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  const int field = (bits & 0x7fff) >> mantissa_bits;
  const int fraction = bits & ((1 << mantissa_bits) - 1);
  if (field == (1 << exponent_bits) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  const int smallest = 2 - (1 << (exponent_bits - 1));
  const int mantissa = field == 0 ? fraction : fraction + (1 << mantissa_bits);
  return sign * std::ldexp(mantissa, smallest + std::max(field, 1) - 1 - mantissa_bits);
}

double load(DType type, const void* x, std::int64_t i) {
  switch (type) {
    case DType::f64: return static_cast<const double*>(x)[i];
    case DType::f32: return static_cast<const float*>(x)[i];
    case DType::f16: return decode16(static_cast<const std::uint16_t*>(x)[i], 5, 10);
    case DType::bf16: return decode16(static_cast<const std::uint16_t*>(x)[i], 8, 7);
    default: return std::numeric_limits<double>::quiet_NaN();
  }
}

void store(DType type, void* x, std::int64_t i, double value) {
  switch (type) {
    case DType::f64: static_cast<double*>(x)[i] = value; break;
    case DType::f32: static_cast<float*>(x)[i] = static_cast<float>(value); break;
    case DType::f16: static_cast<std::uint16_t*>(x)[i] = encode16(value, 5, 10); break;
    case DType::bf16: static_cast<std::uint16_t*>(x)[i] = encode16(value, 8, 7); break;
    default: break;
  }
}

}  // namespace gemini::reference
