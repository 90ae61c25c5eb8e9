#include <array>
#include <cmath>

#include "kernels/reference/reference.hpp"

namespace gemini::reference {
namespace {

using Words = std::array<std::uint32_t, 4>;

// One round of the paper's figure 2, keys bumped by the Weyl constants.
Words philox_words(std::uint64_t index, std::uint64_t key) {
  std::uint64_t left = index & 0xffffffffu, left_low = index >> 32, right = 0, right_low = 0;
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p = left * 3528531795u, q = right * 3449720151u;
    left = (q >> 32) ^ left_low ^ k0;
    left_low = q & 0xffffffffu;
    right = (p >> 32) ^ right_low ^ k1;
    right_low = p & 0xffffffffu;
    k0 += 2654435769u;
    k1 += 3144134277u;
  }
  return {static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(left_low),
          static_cast<std::uint32_t>(right), static_cast<std::uint32_t>(right_low)};
}

// 53 bits of a pair of words as an integer-valued double
double integer53(std::uint32_t high, std::uint32_t low) {
  return high * 2097152.0 + (low >> 11);
}

}  // namespace

void draw(DType type, kernels::Distribution distribution, std::uint64_t key, std::int64_t first,
          std::int64_t count, void* values) {
  const double two53 = 9007199254740992.0, pi = 3.14159265358979323846;
  for (std::int64_t i = 0; i < count; ++i) {
    const Words words = philox_words(static_cast<std::uint64_t>(first + i), key);
    const double n = integer53(words[0], words[1]), k = integer53(words[2], words[3]);
    double value;
    if (distribution.kind == kernels::Distribution::uniform) {
      value = distribution.a + n / two53 * (distribution.b - distribution.a);
    } else {
      const double radius = std::sqrt(-2.0 * std::log((n + 1.0) / two53));
      value = distribution.a + distribution.b * (radius * std::cos(2.0 * pi * (k / two53)));
    }
    store(type, values, i, value);
  }
}

}  // namespace gemini::reference
