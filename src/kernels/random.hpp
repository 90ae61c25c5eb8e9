// Initial values by rule: a pure function of (key, row-major index), whatever rank draws them.
#pragma once

#include <cstdint>

#include "base/dtype.hpp"

namespace gemini::kernels {

struct Distribution {
  enum Kind { uniform, normal } kind;
  double a, b;  // uniform: [a, b); normal: mean a, standard deviation b
};

// values[i] for index first + i, drawn in double from Philox4x32-10 (counter = index, key = key) and
// rounded to type. Normal: Box-Muller, one draw per index.
void draw(DType type, Distribution distribution, std::uint64_t key, std::int64_t first, std::int64_t count,
          void* values);

}  // namespace gemini::kernels
