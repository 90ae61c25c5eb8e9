// Storage types of 16 bits. Arithmetic is done in float; conversions are in kernels/convert.hpp.
#pragma once

#include <cstdint>

namespace gemini {

struct Half {
  std::uint16_t bits;
};

struct BFloat16 {
  std::uint16_t bits;
};

}  // namespace gemini
