// Loops over single elements, the body of a block.
#pragma once

#include <Kokkos_Macros.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

// Each index of an elementwise functor touches its own elements only: nothing is carried between them.
#if defined(__clang__)
#define GEMINI_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define GEMINI_INDEPENDENT _Pragma("GCC ivdep")
#else
#define GEMINI_INDEPENDENT
#endif

namespace gemini::kernels {

constexpr std::int64_t kGroup = 64;  // elements: whole vectors, and whole cache lines of every type
constexpr std::int64_t kLineBytes = 64;

// What the processor shall fetch while it works on earlier elements. Its own prediction keeps up with loops
// that only move data; while it waits for divisions and square roots too few loads are under way.
struct Fetch {
  static constexpr std::int64_t kAhead = 512;  // elements
  std::int64_t first;

  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(const T* array) const {
    constexpr std::int64_t kSize = sizeof(T);
    const auto* bytes = reinterpret_cast<const char*>(array) + (first + kAhead) * kSize;
    for (std::int64_t b = 0; b < kGroup * kSize; b += kLineBytes) __builtin_prefetch(bytes + b);
  }
};

// functor(i). A local copy of the functor lets the compiler see that stores do not change its members.
template <class Functor>
struct ElementBlock {
  Functor functor;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    const Functor local = functor;
    std::int64_t first = begin;
    for (; first + kGroup <= end; first += kGroup) {
      local.arrays(Fetch{first});
      GEMINI_INDEPENDENT
      for (std::int64_t i = first; i < first + kGroup; ++i) local(i);
    }
    GEMINI_INDEPENDENT
    for (std::int64_t i = first; i < end; ++i) local(i);
  }
};

// From how many bytes on an array that is only written goes past the caches: more than stays in them until it
// is read. Tests change it.
inline std::int64_t streamed_from_bytes = std::int64_t{32} << 20;

// A group that was computed in the cache, to an address aligned to a line. The line there is not read first.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void stream_group(const T* group, T* to) {
#if defined(__SSE2__)
  const auto* from = reinterpret_cast<const __m128i*>(group);
  auto* vectors = reinterpret_cast<__m128i*>(to);
  for (std::size_t k = 0; k < kGroup * sizeof(T) / sizeof(__m128i); ++k)
    _mm_stream_si128(vectors + k, _mm_load_si128(from + k));
#else
  for (std::int64_t j = 0; j < kGroup; ++j) to[j] = group[j];
#endif
}

KOKKOS_FORCEINLINE_FUNCTION void finish_streams() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

// functor.output()[i] = functor.value(i), where that array is not read.
template <class Functor>
struct OutputBlock {
  Functor functor;
  bool streams;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    if (streams) {
      const std::int64_t first = aligned(begin, end);
      store(begin, first);
      store(stream(first, end), end);
    } else {
      store(begin, end);
    }
  }

 private:
  // The first index whose output begins a line
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t aligned(std::int64_t begin, std::int64_t end) const {
    const auto* to = functor.output() + begin;
    const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % kLineBytes);
    const std::int64_t rest = (kLineBytes - past) % kLineBytes / std::int64_t{sizeof *to};
    return rest < end - begin ? begin + rest : end;
  }

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t stream(std::int64_t first, std::int64_t end) const {
    const Functor local = functor;
    auto* const to = local.output();
    for (; first + kGroup <= end; first += kGroup) {
      local.arrays(Fetch{first});
      alignas(kLineBytes) std::remove_pointer_t<decltype(local.output())> group[kGroup];
      GEMINI_INDEPENDENT
      for (std::int64_t j = 0; j < kGroup; ++j) group[j] = local.value(first + j);
      stream_group(group, to + first);
    }
    finish_streams();
    return first;
  }

  KOKKOS_FORCEINLINE_FUNCTION void store(std::int64_t first, std::int64_t end) const {
    const Functor local = functor;
    auto* const to = local.output();
    for (; first + kGroup <= end; first += kGroup) {
      local.arrays(Fetch{first});
      Fetch{first}(to);
      GEMINI_INDEPENDENT
      for (std::int64_t i = first; i < first + kGroup; ++i) to[i] = local.value(i);
    }
    GEMINI_INDEPENDENT
    for (std::int64_t i = first; i < end; ++i) to[i] = local.value(i);
  }
};

}  // namespace gemini::kernels
