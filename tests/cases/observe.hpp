// What tests look at through the C API: whole arrays of optimizer state, 16-bit values, ranks.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/rank_assert.hpp"
#include "support/test_context.hpp"

namespace gemini_test {

inline int rank_of(MPI_Comm comm = MPI_COMM_WORLD) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}
inline int ranks_of(MPI_Comm comm = MPI_COMM_WORLD) {
  int ranks = 1;
  MPI_Comm_size(comm, &ranks);
  return ranks;
}

// The rank that does otherwise.
inline bool odd_one() {
  return rank_of() == ranks_of() - 1;
}
inline std::string its_name() {
  return "rank " + std::to_string(ranks_of() - 1);
}

// Gathered parameters are the shards themselves, and take no memory beside them.
inline bool reads_in_place(const Context& ctx) {
  return ranks_of() == 1 || ctx.option("collectives") == "shared";
}

// A parameter as gemini_shard_visit shows it, put together from all ranks.
struct Seen {
  explicit Seen(std::size_t elems)
      : master(elems), grad(elems), state1(elems), state2(elems), visits(elems) {}
  std::vector<double> master, grad, state1, state2, visits;
  double pieces_with_grad = 0, pieces_with_state1 = 0, pieces_with_state2 = 0;
};

namespace detail {

struct Look {
  gemini_param_t param;
  bool wide;
  Seen* seen;
};

inline int look(void* user, gemini_param_t param, int64_t first, int64_t count, void* master,
                const void* grad, void* state1, void* state2) {
  const Look& look = *static_cast<const Look*>(user);
  if (param != look.param) return 0;
  const auto copy = [&](const void* from, std::vector<double>& to) {
    for (int64_t i = 0; from != nullptr && i < count; ++i)
      to[static_cast<std::size_t>(first + i)] =
          look.wide ? static_cast<const double*>(from)[i] : static_cast<const float*>(from)[i];
  };
  copy(master, look.seen->master);
  copy(grad, look.seen->grad);
  copy(state1, look.seen->state1);
  copy(state2, look.seen->state2);
  for (int64_t i = 0; i < count; ++i) look.seen->visits[static_cast<std::size_t>(first + i)] += 1;
  look.seen->pieces_with_grad += grad != nullptr ? 1 : 0;
  look.seen->pieces_with_state1 += state1 != nullptr ? 1 : 0;
  look.seen->pieces_with_state2 += state2 != nullptr ? 1 : 0;
  return 0;
}

inline void add_over(MPI_Comm comm, double* values, std::size_t count) {
  if (count > 0) MPI_Allreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_DOUBLE, MPI_SUM, comm);
}

}  // namespace detail

// Agreed: every rank of comm calls. Throws unless each element lies on exactly one rank.
inline Seen see(const Context& ctx, gemini_param_t param, MPI_Comm comm = MPI_COMM_WORLD) {
  Seen seen(static_cast<std::size_t>(elems(param)));
  detail::Look look{param, info(param).dtype == GEMINI_F64, &seen};
  GEMINI_CHECK(gemini_shard_visit(ctx, detail::look, &look));
  for (auto* array : {&seen.master, &seen.grad, &seen.state1, &seen.state2, &seen.visits})
    detail::add_over(comm, array->data(), array->size());
  for (double* count : {&seen.pieces_with_grad, &seen.pieces_with_state1, &seen.pieces_with_state2})
    detail::add_over(comm, count, 1);
  for (const double visits : seen.visits)
    if (visits != 1) throw std::runtime_error("an element was shown on none or on several ranks");
  return seen;
}

// Bits of a value that the type holds exactly.
inline std::uint16_t f16_bits(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  value = std::fabs(value);
  if (std::isinf(value)) return sign | 0x7C00;
  if (value == 0) return sign;
  int exponent = 0;
  (void)std::frexp(value, &exponent);  // value = m * 2^exponent, 0.5 <= m < 1
  if (exponent < -13) return static_cast<std::uint16_t>(sign | static_cast<int>(std::ldexp(value, 24)));
  const auto mantissa = static_cast<int>(std::ldexp(value, 11 - exponent)) - 1024;
  return static_cast<std::uint16_t>(sign | (exponent + 14) << 10 | mantissa);
}
inline double from_f16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F;
  const int mantissa = bits & 0x3FF;
  const double value =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);  // finite
  return (bits & 0x8000) != 0 ? -value : value;
}
inline std::uint16_t bf16_bits(double value) {
  const auto single = static_cast<float>(value);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &single, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

// In a BACKWARD lease: writes fn(i) to each element of a gradient that is F16 or BF16 (in that dtype), F32
// or F64. Values must be exact in it.
inline void write_grad(gemini_param_t param, const ElementFn& fn) {
  void* grad = nullptr;
  GEMINI_CHECK(gemini_param_grad(param, &grad, nullptr));
  const gemini_param_info_t what = info(param);
  for (int64_t i = 0; i < what.elems; ++i) {
    switch (what.dtype) {
      case GEMINI_F16: static_cast<std::uint16_t*>(grad)[i] = f16_bits(fn(i)); break;
      case GEMINI_BF16: static_cast<std::uint16_t*>(grad)[i] = bf16_bits(fn(i)); break;
      case GEMINI_F32: static_cast<float*>(grad)[i] = static_cast<float>(fn(i)); break;
      default: static_cast<double*>(grad)[i] = fn(i); break;
    }
  }
}

// The same for F16, F32 and F64, added to what is there.
inline void more_grad(gemini_param_t param, const ElementFn& fn) {
  void* grad = nullptr;
  GEMINI_CHECK(gemini_param_grad(param, &grad, nullptr));
  const gemini_dtype_t dtype = info(param).dtype;
  write_grad(param, [&](int64_t i) {
    const double before = dtype == GEMINI_F16   ? from_f16(static_cast<const std::uint16_t*>(grad)[i])
                          : dtype == GEMINI_F32 ? static_cast<const float*>(grad)[i]
                                                : static_cast<const double*>(grad)[i];
    return before + fn(i);
  });
}

// One micro-batch of one parameter whose gradient is fn(i).
inline void train(Context& ctx, gemini_param_t param, const ElementFn& fn) {
  ctx.op(GEMINI_FORWARD, {param});
  ctx.op(GEMINI_BACKWARD, {param}, [&] { write_grad(param, fn); });
}
inline void train(Context& ctx, gemini_param_t param, double gradient) {
  train(ctx, param, [gradient](int64_t) { return gradient; });
}

inline bool all_are(const std::vector<double>& values, double expected, double tolerance = 0) {
  for (const double value : values)
    if (!(std::fabs(value - expected) <= tolerance)) return false;
  return !values.empty();
}
// Moments show what Adam's first update, about lr * sign(gradient), hides: after it m = 0.1 g, v = 0.001 g^2.
inline ::testing::AssertionResult first_moments(const Seen& seen, double gradient, bool wide) {
  const double precision = wide ? 1e-14 : 3e-7;
  const double m = 0.1 * gradient;
  const double v = 0.001 * gradient * gradient;
  if (all_are(seen.state1, m, precision * std::fabs(m)) && all_are(seen.state2, v, precision * v))
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "m " << seen.state1[0] << " to " << seen.state1.back() << " instead of " << m << ", v "
         << seen.state2[0] << " to " << seen.state2.back() << " instead of " << v;
}
// Agreed: every rank calls.
inline ::testing::AssertionResult first_moments(const Context& ctx, gemini_param_t param, double gradient) {
  return first_moments(see(ctx, param), gradient, info(param).dtype == GEMINI_F64);
}

inline bool said(const char* words) {
  return std::strstr(gemini_last_error_message(), words) != nullptr;
}

// adamw is adam here: no decay.
inline const KeyValues kAdam = {{"optimizer", "adam"}, {"lr", "0.1"}, {"timeout_s", "60"}};
inline KeyValues adam_with(const KeyValues& more) {
  KeyValues all = kAdam;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace gemini_test

// The message of the call before; prints it when the words are missing.
#define EXPECT_SAID(words)                \
  EXPECT_TRUE(::gemini_test::said(words)) \
      << "instead of \"" << (words) << "\": " << gemini_last_error_message()
