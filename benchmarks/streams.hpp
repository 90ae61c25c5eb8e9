// What the kernels are measured against: loops over the same arrays that compute next to nothing, built for
// this very machine.
#pragma once

#include <cstdint>

namespace gemini_bench {

// Reads and writes w, m and v, reads g; as AdamW does. With `copy` writes that too, 16 bits of each w.
void stream_w_m_v_g(float* w, float* m, float* v, const float* g, std::int64_t count);
void stream_w_m_v_g_copy(float* w, float* m, float* v, const float* g, std::uint16_t* copy,
                         std::int64_t count);
// As plain SGD
void stream_w_g(float* w, const float* g, std::int64_t count);
// As Lion
void stream_w_m_g(float* w, float* m, const float* g, std::int64_t count);
// The upper halves
void stream_halves(const float* x, std::uint16_t* y, std::int64_t count);

}  // namespace gemini_bench
