#include "streams.hpp"

#include <cstring>

// The arrays do not overlap.
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace gemini_bench {
namespace {

inline std::uint16_t upper_half(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

}  // namespace

void stream_w_m_v_g(float* w, float* m, float* v, const float* g, std::int64_t count) {
  INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    w[i] += g[i];
    m[i] += g[i];
    v[i] += g[i];
  }
}

void stream_w_m_v_g_copy(float* w, float* m, float* v, const float* g, std::uint16_t* copy,
                         std::int64_t count) {
  INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    w[i] += g[i];
    m[i] += g[i];
    v[i] += g[i];
    copy[i] = upper_half(w[i]);
  }
}

void stream_w_g(float* w, const float* g, std::int64_t count) {
  INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) w[i] += g[i];
}

void stream_w_m_g(float* w, float* m, const float* g, std::int64_t count) {
  INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    w[i] += g[i];
    m[i] += g[i];
  }
}

void stream_halves(const float* x, std::uint16_t* y, std::int64_t count) {
  INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) y[i] = upper_half(x[i]);
}

}  // namespace gemini_bench
