// The kernels as plain loops over one scalar formula each, written without regard to speed and apart from the
// library's: same arguments, same bits. For tests.
#pragma once

#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/optimizers.hpp"
#include "kernels/random.hpp"

namespace gemini::reference {

// 16-bit formats from their definition: exponent and mantissa bits, round to nearest even.
std::uint16_t encode16(double value, int exponent_bits, int mantissa_bits);
double decode16(std::uint16_t bits, int exponent_bits, int mantissa_bits);

// OCP e4m3 from its definition; what lies beyond the largest becomes the largest, infinities become NaN.
std::uint8_t encode8(double value);
double decode8(std::uint8_t bits);
void encode_float8(DType type, const void* x, std::int64_t count, void* encoded);
void decode_float8(const void* encoded, std::int64_t count, DType type, void* x);

// Element i of an array as a double (exact), and back (rounded once).
double load(DType type, const void* x, std::int64_t i);
void store(DType type, void* x, std::int64_t i, double value);

void fill(DType type, void* x, std::int64_t count, double value);
void convert(DType from, const void* x, DType to, void* y, std::int64_t count);
void scale(DType type, void* x, std::int64_t count, double factor);
void add(DType type, const void* x, void* sum, std::int64_t count);
void axpy(DType type, double a, const void* x, void* y, std::int64_t count);
void divide(DType type, void* x, std::int64_t count, double divisor);
void add_quotient(DType type, const void* x, double divisor, void* sum, std::int64_t count);
void sum_contributions(DType type, const void* const* contributions, int ranks, void* sum,
                       std::int64_t count);
void add_contributions(DType type, const void* const* contributions, int ranks, double divisor, bool first,
                       void* sum, std::int64_t count);
bool all_finite(DType type, const void* x, std::int64_t count);
void add_squares(DType type, const void* x, std::int64_t count, ExactSum& sum);
double max_abs(DType type, const void* x, std::int64_t count);

void update(kernels::Optimizer optimizer, const kernels::Hyper& hyper, std::int64_t step,
            const kernels::Piece& piece);
void lamb_moments(const kernels::Hyper& hyper, std::int64_t step, const kernels::Piece& piece,
                  ExactSum& weight_squares, ExactSum& update_squares);
void lamb_apply(const kernels::Hyper& hyper, std::int64_t step, double ratio, const kernels::Piece& piece);

void draw(DType type, kernels::Distribution distribution, std::uint64_t key, std::int64_t first,
          std::int64_t count, void* values);

}  // namespace gemini::reference
