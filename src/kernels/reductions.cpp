#include <limits>

#include "kernels/convert.hpp"
#include "kernels/kernels.hpp"
#include "kernels/launch.hpp"
#include "kernels/square_bins.hpp"

namespace gemini::kernels {
namespace {

// Magnitudes of IEEE values are ordered as their bits are as integers, infinity and NaN at the end.
template <class T>
struct Bits;
template <>
struct Bits<double> {
  using Integer = std::int64_t;
  static constexpr Integer kMagnitude = std::numeric_limits<Integer>::max(), kInfinity = 0x7ff0000000000000;
};
template <>
struct Bits<float> {
  using Integer = std::int32_t;
  static constexpr Integer kMagnitude = std::numeric_limits<Integer>::max(), kInfinity = 0x7f800000;
};
template <>
struct Bits<Half> {
  using Integer = std::int16_t;
  static constexpr Integer kMagnitude = std::numeric_limits<Integer>::max(), kInfinity = 0x7c00;
};
template <>
struct Bits<BFloat16> {
  using Integer = std::int16_t;
  static constexpr Integer kMagnitude = std::numeric_limits<Integer>::max(), kInfinity = 0x7f80;
};

template <class T>
struct LargestBlock {
  using Integer = typename Bits<T>::Integer;
  const T* x;
  std::int64_t* largest;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    const T* const values = x;
    Integer most = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      Integer bits;
      std::memcpy(&bits, values + i, sizeof bits);
      const auto magnitude = static_cast<Integer>(bits & Bits<T>::kMagnitude);
      most = magnitude > most ? magnitude : most;
    }
    Kokkos::atomic_fetch_max(largest, static_cast<std::int64_t>(most));
  }
};

template <class T>
typename Bits<T>::Integer largest_magnitude(const void* x, std::int64_t count) {
  constexpr std::int64_t kBlock = 65536;
  std::int64_t largest = 0;
  for_blocks(count, kBlock, LargestBlock<T>{static_cast<const T*>(x), &largest});
  return static_cast<typename Bits<T>::Integer>(largest);
}

template <class T>
struct Load {
  const T* x;
  KOKKOS_FORCEINLINE_FUNCTION T operator()(std::int64_t i) const { return x[i]; }
};

}  // namespace

bool all_finite(DType type, const void* x, std::int64_t count) {
  return with_floating(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return largest_magnitude<T>(x, count) < Bits<T>::kInfinity;
  });
}

double max_abs(DType type, const void* x, std::int64_t count) {
  return with_floating(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto bits = largest_magnitude<T>(x, count);
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return convert_to<double>(value);
  });
}

void add_squares(DType type, const void* x, std::int64_t count, ExactSum& sum) {
  with_floating(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    add_squares_of<T>(count, Load<T>{static_cast<const T*>(x)}, sum);
  });
}

}  // namespace gemini::kernels
