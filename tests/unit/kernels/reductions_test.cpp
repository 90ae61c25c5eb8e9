#include <limits>

#include "guarded.hpp"
#include "kernels/kernels.hpp"

namespace gemini::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void expect_same_limbs(ExactSum a, ExactSum b) {
  a.normalise();
  b.normalise();
  EXPECT_EQ(a.limbs(), b.limbs());
}

TEST(Reductions, AddSquaresAgreesWithSingleAdds) {
  for_all_shapes([](DType type, std::int64_t count, std::int64_t offset) {
    for (const bool any : {false, true}) {
      Guarded x(type, count, offset);
      any ? x.any_bits(3) : x.random(3);
      ExactSum sum, expected;
      sum.add(-1e-3);  // what was there before stays
      expected.add(-1e-3);
      kernels::add_squares(type, x.data(), count, sum);
      reference::add_squares(type, x.data(), count, expected);
      expect_same_limbs(sum, expected);
    }
  });
}

TEST(Reductions, AddSquaresOfEveryHalfAndBFloat16) {
  for (const DType type : {DType::f16, DType::bf16}) {
    std::vector<std::uint16_t> x(65536);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint16_t>(i);
    ExactSum sum, expected;
    kernels::add_squares(type, x.data(), 65536, sum);
    reference::add_squares(type, x.data(), 65536, expected);
    expect_same_limbs(sum, expected);
    EXPECT_EQ(sum.limbs()[ExactSum::kLimbs - 1], type == DType::f16 ? 2048 : 256);  // inf and NaN
  }
}

TEST(Reductions, AddSquaresFillsItsBinsWithoutOverflow) {
  // More than one block of values whose mantissas have all bits set
  const std::int64_t count = 3 * 65536 + 5;
  std::vector<float> x(static_cast<std::size_t>(count), 0x1.fffffep127f);
  std::vector<double> y(static_cast<std::size_t>(count), 0x1.fffffffffffffp500);
  ExactSum sum, expected, wide_sum, wide_expected;
  kernels::add_squares(DType::f32, x.data(), count, sum);
  reference::add_squares(DType::f32, x.data(), count, expected);
  expect_same_limbs(sum, expected);
  kernels::add_squares(DType::f64, y.data(), count, wide_sum);
  reference::add_squares(DType::f64, y.data(), count, wide_expected);
  expect_same_limbs(wide_sum, wide_expected);
}

TEST(Reductions, AddSquaresNearTheLargestDouble) {
  const std::vector<double> x(70000, 0x1.fffffffffffffp511);
  ExactSum sum, expected;
  kernels::add_squares(DType::f64, x.data(), 70000, sum);
  reference::add_squares(DType::f64, x.data(), 70000, expected);
  expect_same_limbs(sum, expected);
  EXPECT_TRUE(sum.finite());
  EXPECT_EQ(sum.value(), kInfinity);
}

TEST(Reductions, AddSquaresDoesNotDependOnCuts) {
  Guarded x(DType::f32, 100003, 1);
  x.random(9, 1e-3);
  ExactSum whole, parts;
  kernels::add_squares(DType::f32, x.data(), x.count(), whole);
  std::mt19937 engine(1);
  for (std::int64_t begin = 0; begin < x.count();) {
    const std::int64_t end = std::min<std::int64_t>(x.count(), begin + 1 + engine() % 30000);
    ExactSum part;
    kernels::add_squares(DType::f32, x.at(begin), end - begin, part);
    parts.add(part);
    begin = end;
  }
  expect_same_limbs(whole, parts);
}

TEST(Reductions, MaxAbs) {
  for_all_shapes([](DType type, std::int64_t count, std::int64_t offset) {
    Guarded x(type, count, offset);
    x.random(4);
    EXPECT_EQ(kernels::max_abs(type, x.data(), count), reference::max_abs(type, x.data(), count));
    EXPECT_TRUE(kernels::all_finite(type, x.data(), count));
  });
}

TEST(Reductions, OneValueThatIsNotFiniteIsSeenAnywhere) {
  for_all_shapes([](DType type, std::int64_t count, std::int64_t offset) {
    for (const std::int64_t place : {std::int64_t{0}, count / 2, count - 1}) {
      if (count == 0) return;
      Guarded x(type, count, offset);
      x.random(4);
      reference::store(type, x.data(), place, -kInfinity);
      EXPECT_FALSE(kernels::all_finite(type, x.data(), count));
      EXPECT_EQ(kernels::max_abs(type, x.data(), count), kInfinity);
      reference::store(type, x.data(), place, std::nan(""));
      EXPECT_FALSE(kernels::all_finite(type, x.data(), count));
      EXPECT_TRUE(std::isnan(kernels::max_abs(type, x.data(), count)));
      ExactSum sum;
      kernels::add_squares(type, x.data(), count, sum);
      EXPECT_EQ(sum.limbs()[ExactSum::kLimbs - 1], 1);
    }
  });
}

TEST(Reductions, ManyBlocks) {
  Guarded x(DType::f16, 200001, 3);
  x.random(6);
  EXPECT_EQ(kernels::max_abs(DType::f16, x.data(), x.count()),
            reference::max_abs(DType::f16, x.data(), x.count()));
  EXPECT_TRUE(kernels::all_finite(DType::f16, x.data(), x.count()));
  reference::store(DType::f16, x.data(), 200000, kInfinity);
  EXPECT_FALSE(kernels::all_finite(DType::f16, x.data(), x.count()));
}

}  // namespace
}  // namespace gemini::test
