#include "kernels/kernels.hpp"

#include "guarded.hpp"

namespace gemini::test {
namespace {

// A kernel and its reference on copies of the same array.
template <class Kernel, class Reference>
void compare_in_place(Kernel kernel, Reference reference) {
  for_all_shapes([&](DType type, std::int64_t count, std::int64_t offset) {
    for (const bool any : {false, true}) {
      Guarded x(type, count, offset);
      any ? x.any_bits(17) : x.random(17);
      Guarded y = x;
      kernel(type, x.data(), count);
      reference(type, y.data(), count);
      EXPECT_TRUE(same(x, y));
    }
  });
}

template <class Kernel, class Reference>
void compare_onto_sum(Kernel kernel, Reference reference) {
  for_all_shapes([&](DType type, std::int64_t count, std::int64_t offset) {
    for (const bool any : {false, true}) {
      Guarded x(type, count, offset), sum(wide(type), count, 3 - offset);
      any ? x.any_bits(5) : x.random(5);
      any ? sum.any_bits(6) : sum.random(6);
      const Guarded kept = x;
      Guarded expected = sum;
      kernel(type, x.data(), sum.data(), count);
      reference(type, x.data(), expected.data(), count);
      EXPECT_TRUE(same(sum, expected));
      EXPECT_TRUE(same(x, kept));
    }
  });
}

TEST(Elementwise, Fill) {
  for (const double value : {0.0, 1.0 / 3.0, -65519.999, 1e300}) {
    compare_in_place([&](DType t, void* x, std::int64_t n) { kernels::fill(t, x, n, value); },
                     [&](DType t, void* x, std::int64_t n) { reference::fill(t, x, n, value); });
  }
}

TEST(Elementwise, Scale) {
  for (const double factor : {1.0, 0.1, 65536.0, 1e-6}) {
    compare_in_place([&](DType t, void* x, std::int64_t n) { kernels::scale(t, x, n, factor); },
                     [&](DType t, void* x, std::int64_t n) { reference::scale(t, x, n, factor); });
  }
}

TEST(Elementwise, Divide) {
  for (const double divisor : {3.0, 0.1, 1024.0}) {
    compare_in_place([&](DType t, void* x, std::int64_t n) { kernels::divide(t, x, n, divisor); },
                     [&](DType t, void* x, std::int64_t n) { reference::divide(t, x, n, divisor); });
  }
}

TEST(Elementwise, Add) {
  compare_onto_sum(kernels::add, reference::add);
}

TEST(Elementwise, Axpy) {
  for (const double a : {0.3, -1e-3}) {
    compare_onto_sum(
        [&](DType t, const void* x, void* y, std::int64_t n) { kernels::axpy(t, a, x, y, n); },
        [&](DType t, const void* x, void* y, std::int64_t n) { reference::axpy(t, a, x, y, n); });
  }
}

TEST(Elementwise, AddQuotient) {
  for (const DType type : {DType::f64, DType::f32}) {
    for (const std::int64_t count : kSizes) {
      Guarded x(type, count, 1), sum(type, count, 3);
      x.random(1);
      sum.random(2);
      Guarded expected = sum;
      kernels::add_quotient(type, x.data(), 3.0, sum.data(), count);
      reference::add_quotient(type, x.data(), 3.0, expected.data(), count);
      EXPECT_TRUE(same(sum, expected));
    }
  }
  EXPECT_THROW(kernels::add_quotient(DType::f16, nullptr, 1.0, nullptr, 0), Error);
}

TEST(Elementwise, ProductAndSumAreRoundedSeparately) {
  // (1 + e)^2 - (1 + 2e) is e^2 with a fused operation, 0 without
  const float a = 1.0f + 0x1p-23f;
  float y = -(1.0f + 0x1p-22f);
  kernels::axpy(DType::f32, a, &a, &y, 1);
  EXPECT_EQ(y, 0.0f);
}

TEST(Elementwise, SixteenBitSumsDoNotOverflow) {
  const std::uint16_t largest = 0x7bff;  // 65504
  float sum = 0.0f;
  for (int i = 0; i < 4; ++i) kernels::add(DType::f16, &largest, &sum, 1);
  kernels::divide(DType::f32, &sum, 1, 4.0);
  EXPECT_EQ(sum, 65504.0f);
}

TEST(Elementwise, NothingIsDoneForNoElements) {
  for (const DType type : kFloating) {
    kernels::fill(type, nullptr, 0, 1.0);
    kernels::convert(type, nullptr, DType::f32, nullptr, 0);
    kernels::add(type, nullptr, nullptr, 0);
    EXPECT_TRUE(kernels::all_finite(type, nullptr, 0));
    EXPECT_EQ(kernels::max_abs(type, nullptr, 0), 0.0);
  }
}

TEST(Elementwise, IntegersAreRefused) {
  std::int32_t x = 7;
  EXPECT_THROW(kernels::fill(DType::i32, &x, 1, 0.0), Error);
  EXPECT_EQ(x, 7);
}

}  // namespace
}  // namespace gemini::test
