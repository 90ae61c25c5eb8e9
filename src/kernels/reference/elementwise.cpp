#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/reference.hpp"

namespace gemini::reference {
namespace {

// result = operation(a, b) in the compute type of `type`; both operands are rounded to it first.
template <class Operation>
double in_wide(DType type, double a, double b, Operation operation) {
  if (wide(type) == DType::f64) return operation(a, b);
  return static_cast<double>(operation(static_cast<float>(a), static_cast<float>(b)));
}

double product(DType type, double a, double b) {
  return in_wide(type, a, b, [](auto x, auto y) { return x * y; });
}
double quotient(DType type, double a, double b) {
  return in_wide(type, a, b, [](auto x, auto y) { return x / y; });
}
double sum_of(DType type, double a, double b) {
  return in_wide(type, a, b, [](auto x, auto y) { return x + y; });
}

}  // namespace

void fill(DType type, void* x, std::int64_t count, double value) {
  for (std::int64_t i = 0; i < count; ++i) store(type, x, i, value);
}

void convert(DType from, const void* x, DType to, void* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) store(to, y, i, load(from, x, i));
}

void scale(DType type, void* x, std::int64_t count, double factor) {
  for (std::int64_t i = 0; i < count; ++i) store(type, x, i, product(type, load(type, x, i), factor));
}

void add(DType type, const void* x, void* sum, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    store(wide(type), sum, i, sum_of(type, load(wide(type), sum, i), load(type, x, i)));
  }
}

void axpy(DType type, double a, const void* x, void* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double term = product(type, a, load(type, x, i));
    store(wide(type), y, i, sum_of(type, load(wide(type), y, i), term));
  }
}

void divide(DType type, void* x, std::int64_t count, double divisor) {
  for (std::int64_t i = 0; i < count; ++i) store(type, x, i, quotient(type, load(type, x, i), divisor));
}

void add_quotient(DType type, const void* x, double divisor, void* sum, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double term = quotient(type, load(type, x, i), divisor);
    store(type, sum, i, sum_of(type, load(type, sum, i), term));
  }
}

void sum_contributions(DType type, const void* const* contributions, int ranks, void* sum,
                       std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = [&](int rank) {
      return contributions[rank] == nullptr ? 0.0 : load(type, contributions[rank], i);
    };
    double total = value(0);
    for (int rank = 1; rank < ranks; ++rank) total = sum_of(type, total, value(rank));
    store(wide(type), sum, i, total);
  }
}

void add_contributions(DType type, const void* const* contributions, int ranks, double divisor, bool first,
                       void* sum, std::int64_t count) {
  std::vector<double> total(static_cast<std::size_t>(count));  // room for either type
  sum_contributions(type, contributions, ranks, total.data(), count);
  if (first) fill(wide(type), sum, count, 0.0);
  add_quotient(wide(type), total.data(), divisor, sum, count);
}

bool all_finite(DType type, const void* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(load(type, x, i))) return false;
  }
  return true;
}

void add_squares(DType type, const void* x, std::int64_t count, ExactSum& sum) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = load(type, x, i);
    sum.add(value * value);
  }
}

double max_abs(DType type, const void* x, std::int64_t count) {
  double most = 0.0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = std::fabs(load(type, x, i));
    if (std::isnan(value)) return value;
    most = std::max(most, value);
  }
  return most;
}

}  // namespace gemini::reference
