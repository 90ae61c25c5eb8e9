// Elementwise and reduction kernels over arrays in compute memory, launched through Kokkos.
//
// Each is one fixed sequence of IEEE operations per element, so results do not depend on how an array is
// cut. 16-bit values are computed in float and rounded to nearest even once, at the store. Pointers may be
// NULL where count is 0; they need only their type's natural alignment.
#pragma once

#include <cstdint>

#include "base/dtype.hpp"
#include "kernels/exact_sum.hpp"

namespace gemini::kernels {

// x[i] = value
void fill(DType type, void* x, std::int64_t count, double value);

// y[i] = x[i], rounded to nearest even (once, also from f64 to 16 bits). The arrays do not overlap.
void convert(DType from, const void* x, DType to, void* y, std::int64_t count);

// x[i] *= factor, the factor rounded to wide(type) first
void scale(DType type, void* x, std::int64_t count, double factor);

// sum[i] += x[i]; sum is of wide(type)
void add(DType type, const void* x, void* sum, std::int64_t count);

// y[i] += a * x[i] with a, x and y in wide(type), product and sum rounded separately; y is of wide(type)
void axpy(DType type, double a, const void* x, void* y, std::int64_t count);

// x[i] = x[i] / divisor, an IEEE division in wide(type)
void divide(DType type, void* x, std::int64_t count, double divisor);

// sum[i] += x[i] / divisor, both of type f64 or f32: a finished reduction joins those of earlier
// micro-batches
void add_quotient(DType type, const void* x, double divisor, void* sum, std::int64_t count);

// sum[i] = the contributions of ranks 0, 1, ... to element i, added in that order in wide(type), which is
// sum's type. contributions[r]: rank r's values, NULL for zeros.
void sum_contributions(DType type, const void* const* contributions, int ranks, void* sum,
                       std::int64_t count);

// In one pass sum[i] = (first ? 0 : sum[i]) + total[i] / divisor, with total as sum_contributions would make
// it
void add_contributions(DType type, const void* const* contributions, int ranks, double divisor, bool first,
                       void* sum, std::int64_t count);

[[nodiscard]] bool all_finite(DType type, const void* x, std::int64_t count);

// Adds x[i]^2, formed in double, exactly: the sum does not depend on order or cuts.
void add_squares(DType type, const void* x, std::int64_t count, ExactSum& sum);

// max |x[i]|, 0 for an empty array, NaN if any is NaN
[[nodiscard]] double max_abs(DType type, const void* x, std::int64_t count);

}  // namespace gemini::kernels
