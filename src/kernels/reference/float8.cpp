#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/float8.hpp"
#include "kernels/reference/reference.hpp"

namespace gemini::reference {
namespace {

constexpr std::int64_t kBlock = 128;

float with_bits(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// The largest of the normal floats of which 448 are no more than `largest`, the smallest if there is none
float scale_of(double largest) {
  if (largest == 0.0) return 0.0F;
  std::uint32_t low = 0x00800000, high = 0x7f7fffff;  // all of them, by their bits
  while (low < high) {
    const std::uint32_t middle = (low + high + 1) / 2;
    if (448.0 * static_cast<double>(with_bits(middle)) <= largest) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return with_bits(low);
}

double largest_finite(DType type, const void* x, std::int64_t begin, std::int64_t end) {
  double largest = 0.0;
  for (std::int64_t i = begin; i < end; ++i) {
    const double value = load(type, x, i);
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

double quotient(DType type, double x, float scale) {
  if (scale == 0.0F) return x;
  if (wide(type) == DType::f64) return x / static_cast<double>(scale);
  return static_cast<double>(static_cast<float>(x) / scale);
}

double product(DType type, double x, float scale) {
  if (wide(type) == DType::f64) return x * static_cast<double>(scale);
  return static_cast<double>(static_cast<float>(x) * scale);
}

}  // namespace

double decode8(std::uint8_t bits) {
  const double sign = (bits & 0x80) != 0 ? -1.0 : 1.0;
  const int exponent = (bits >> 3) & 15, mantissa = bits & 7;
  if ((bits & 0x7f) == 0x7f) return std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(mantissa, -9);
  return sign * std::ldexp(8 + mantissa, exponent - 10);
}

// The nearest of all codes; of two as near the even one
std::uint8_t encode8(double value) {
  const int sign = std::signbit(value) ? 0x80 : 0;
  if (!std::isfinite(value)) return static_cast<std::uint8_t>(sign | 0x7f);
  const double magnitude = std::min(std::fabs(value), 448.0);
  int best = 0;
  double least = magnitude;
  for (int code = 1; code < 0x7f; ++code) {
    const double distance = std::fabs(decode8(static_cast<std::uint8_t>(code)) - magnitude);
    if (distance > least || (distance == least && code % 2 != 0)) continue;
    best = code;
    least = distance;
  }
  return static_cast<std::uint8_t>(sign | best);
}

void encode_float8(DType type, const void* x, std::int64_t count, void* encoded) {
  if (count == 0) return;
  auto* codes = static_cast<std::uint8_t*>(encoded);
  std::memset(codes, 0, static_cast<std::size_t>(kernels::encoded_bytes(count)));
  std::uint8_t* scales = codes + (count + 3) / 4 * 4;
  for (std::int64_t begin = 0; begin < count; begin += kBlock, scales += 4) {
    const std::int64_t end = std::min(begin + kBlock, count);
    const float scale = scale_of(largest_finite(type, x, begin, end));
    std::memcpy(scales, &scale, 4);
    for (std::int64_t i = begin; i < end; ++i) codes[i] = encode8(quotient(type, load(type, x, i), scale));
  }
}

void decode_float8(const void* encoded, std::int64_t count, DType type, void* x) {
  const auto* codes = static_cast<const std::uint8_t*>(encoded);
  for (std::int64_t i = 0; i < count; ++i) {
    float scale;
    std::memcpy(&scale, codes + (count + 3) / 4 * 4 + i / kBlock * 4, 4);
    store(type, x, i, product(type, decode8(codes[i]), scale));
  }
}

}  // namespace gemini::reference
