#include "kernels/random.hpp"

#include <cmath>

#include "kernels/convert.hpp"
#include "kernels/launch.hpp"
#include "kernels/philox.hpp"

namespace gemini::kernels {
namespace {

// 53 random bits as an integer
KOKKOS_FORCEINLINE_FUNCTION std::uint64_t bits53(std::uint32_t high, std::uint32_t low) {
  return (static_cast<std::uint64_t>(high) << 32 | low) >> 11;
}

constexpr double kUnit = 0x1p-53;
constexpr double kTwoPi = 6.283185307179586476925;

// The next value towards minus infinity of a finite x that is not the lowest.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T next_below(T x) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
  Bits bits;
  std::memcpy(&bits, &x, sizeof bits);
  if ((bits & static_cast<Bits>(~kSign)) == 0) {
    bits = kSign | 1;
  } else {
    bits = static_cast<Bits>((bits & kSign) != 0 ? bits + 1 : bits - 1);
  }
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

template <class T>
struct Draw {
  Distribution distribution;
  std::uint64_t key;
  std::int64_t first;
  T* values;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t i) const {
    const auto index = static_cast<std::uint64_t>(first + i);
    const Philox random =
        philox(Philox{{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 0, 0}},
               static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32));
    const std::uint64_t u = bits53(random.word[0], random.word[1]);
    values[i] = distribution.kind == Distribution::uniform
                    ? uniform(u)
                    : normal(u, bits53(random.word[2], random.word[3]));
  }

  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void arrays(const Visit& visit) const {
    visit(values);
  }

  // Rounding may reach b, which is not in [a, b).
  KOKKOS_FORCEINLINE_FUNCTION T uniform(std::uint64_t u) const {
    const double a = distribution.a, b = distribution.b;
    const T value = convert_to<T>(a + (static_cast<double>(u) * kUnit) * (b - a));
    return a < b && convert_to<double>(value) >= b ? next_below(value) : value;
  }

  KOKKOS_FORCEINLINE_FUNCTION T normal(std::uint64_t u, std::uint64_t v) const {
    const double radius =
        std::sqrt(-2.0 * std::log(static_cast<double>(u + 1) * kUnit));  // u + 1: never log 0
    const double angle = kTwoPi * (static_cast<double>(v) * kUnit);
    return convert_to<T>(distribution.a + distribution.b * (radius * std::cos(angle)));
  }
};

}  // namespace

void draw(DType type, Distribution distribution, std::uint64_t key, std::int64_t first, std::int64_t count,
          void* values) {
  with_floating(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each(count, Draw<T>{distribution, key, first, static_cast<T*>(values)});
  });
}

}  // namespace gemini::kernels
