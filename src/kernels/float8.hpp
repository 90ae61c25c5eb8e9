// Arrays in 8 bits per element for the wire: OCP e4m3 codes with one f32 scale for each block of 128
// elements.
//
// The scale of a block is the largest f32 that keeps 448 times itself within its largest finite magnitude,
// but a normal one; an element is its code times the scale. Blocks of zeros have scale 0. Relative errors
// stay within 2^-4, absolute ones of small elements within 2^-10 of the scale; f64 beyond 448 times the
// largest f32 become that. NaN and infinities come out as NaN. Layout: the codes, zeros up to a multiple of 4
// bytes, the scales.
#pragma once

#include <cstdint>

#include "base/dtype.hpp"

namespace gemini::kernels {

constexpr std::int64_t kFloat8Block = 128;

constexpr std::int64_t float8_blocks(std::int64_t count) noexcept {
  return (count + kFloat8Block - 1) / kFloat8Block;
}
constexpr std::int64_t float8_code_bytes(std::int64_t count) noexcept {
  return (count + 3) / 4 * 4;
}
// Of `count` elements, codes and scales
constexpr std::int64_t encoded_bytes(std::int64_t count) noexcept {
  return float8_code_bytes(count) + 4 * float8_blocks(count);
}

// encoded: encoded_bytes(count), aligned to 4; apart from x. Decoding never overflows the type that was
// encoded.
void encode_float8(DType type, const void* x, std::int64_t count, void* encoded);
void decode_float8(const void* encoded, std::int64_t count, DType type, void* x);

}  // namespace gemini::kernels
