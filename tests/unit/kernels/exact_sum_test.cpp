#include "kernels/exact_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace gemini::test {
namespace {

ExactSum sum_of(const std::vector<double>& terms) {
  ExactSum sum;
  for (const double term : terms) sum.add(term);
  return sum;
}

// Magnitudes over the whole range, every term once more with the opposite sign, and a rest.
std::vector<double> cancelling(std::mt19937_64& engine, const std::vector<double>& rest) {
  std::uniform_real_distribution<double> mantissa(-1.0, 1.0);
  std::uniform_int_distribution<int> exponent(-1080, 1020);
  std::vector<double> terms = rest;
  for (int i = 0; i < 500; ++i) {
    const double term = std::ldexp(mantissa(engine), exponent(engine));
    terms.push_back(term);
    terms.push_back(-term);
  }
  std::shuffle(terms.begin(), terms.end(), engine);
  return terms;
}

TEST(ExactSum, EmptyIsZero) {
  EXPECT_EQ(ExactSum().value(), 0.0);
  EXPECT_TRUE(ExactSum().finite());
}

TEST(ExactSum, OneTermComesBack) {
  std::mt19937_64 engine(2);
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t bits = engine();
    double term;
    std::memcpy(&term, &bits, sizeof term);
    if (!std::isfinite(term)) continue;
    ExactSum sum;
    sum.add(term);
    ASSERT_EQ(sum.value(), term);
    sum.normalise();
    ASSERT_EQ(sum.value(), term);
  }
  for (const double term : {5e-324, -5e-324, 0x1p-1022, -0x0.fffffffffffffp-1022,
                            std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest()}) {
    EXPECT_EQ(sum_of({term}).value(), term);
  }
}

TEST(ExactSum, OrderAndPartsDoNotMatter) {
  std::mt19937_64 engine(3);
  for (int round = 0; round < 50; ++round) {
    const std::vector<double> terms = cancelling(engine, {1e-300, 1.0, -0x1p-60});
    const ExactSum whole = sum_of(terms);
    EXPECT_EQ(whole.value(), 1.0 - 0x1p-60);  // both round to 1
    ExactSum joined;
    for (std::size_t begin = 0; begin < terms.size();) {
      const std::size_t end = std::min(terms.size(), begin + 1 + engine() % 100);
      joined.add(sum_of({terms.begin() + static_cast<std::ptrdiff_t>(begin),
                         terms.begin() + static_cast<std::ptrdiff_t>(end)}));
      begin = end;
    }
    ExactSum a = whole, b = joined;
    a.normalise();
    b.normalise();
    EXPECT_EQ(a.limbs(), b.limbs());
    EXPECT_EQ(joined.value(), whole.value());
  }
}

TEST(ExactSum, WhatCancellationLeavesIsExact) {
  std::mt19937_64 engine(4);
  EXPECT_EQ(sum_of(cancelling(engine, {})).value(), 0.0);
  EXPECT_EQ(sum_of(cancelling(engine, {5e-324})).value(), 5e-324);
  EXPECT_EQ(sum_of(cancelling(engine, {-0x1p-1022, 5e-324})).value(), -0x0.fffffffffffffp-1022);
  EXPECT_EQ(sum_of({1e308, 1e308, -1e308, -1e308, 3.0}).value(), 3.0);
}

TEST(ExactSum, AgreesWithIntegers) {
  std::mt19937_64 engine(5);
  __extension__ typedef __int128 Integer;
  for (int round = 0; round < 200; ++round) {
    Integer exact = 0;
    ExactSum sum;
    for (int i = 0; i < 1000; ++i) {
      const auto term = static_cast<std::int64_t>(engine()) >> 11;  // 53 bits: exact as a double
      const int shift = static_cast<int>(engine() % 50);
      exact += static_cast<Integer>(term) * (Integer{1} << shift);
      sum.add(std::ldexp(static_cast<double>(term), shift - 300));
    }
    // The compiler's conversion of 128-bit integers rounds to nearest even.
    ASSERT_EQ(sum.value(), std::ldexp(static_cast<double>(exact), -300));
  }
}

TEST(ExactSum, RoundsToNearestEven) {
  const double one = 1.0, half_ulp = 0x1p-53, tiny = 5e-324;
  EXPECT_EQ(sum_of({one, half_ulp}).value(), 1.0);
  EXPECT_EQ(sum_of({one, half_ulp, tiny}).value(), 1.0 + 0x1p-52);
  EXPECT_EQ(sum_of({one, half_ulp, -tiny}).value(), 1.0);
  EXPECT_EQ(sum_of({one + 0x1p-52, half_ulp}).value(), 1.0 + 0x1p-51);
  EXPECT_EQ(sum_of({-one, -half_ulp, -tiny}).value(), -1.0 - 0x1p-52);
  EXPECT_EQ(sum_of({0x1p53, 1.0, tiny}).value(), 0x1p53 + 2.0);
  EXPECT_EQ(sum_of({0x1p53, -1.0, 0.5, -tiny}).value(), 0x1p53 - 1.0);
}

TEST(ExactSum, ManyAddsKeepTheirCarries) {
  // All low bits set: each addition changes three limbs by nearly 2^32.
  const double term = 0x1.fffffffffffffp40;
  ExactSum sum;
  const std::int64_t adds = std::int64_t{1} << 25;
  for (std::int64_t i = 0; i < adds; ++i) sum.add(term);
  EXPECT_EQ(sum.value(), term * 0x1p25);
  for (const std::int64_t limb : std::as_const(sum).limbs()) {
    EXPECT_LT(std::abs(limb), std::int64_t{1} << 54);  // far from overflow, however many there were
  }
}

TEST(ExactSum, LimbsAddedOverManyRanksAreStillExact) {
  // The worst that normalised limbs hold, added limb by limb 2^30 times, then used on.
  ExactSum sum;
  const std::int64_t ranks = std::int64_t{1} << 30;
  const double term = -5e-324;  // normalised: every limb full
  sum.add(term);
  sum.normalise();
  for (std::int64_t& limb : sum.limbs()) limb *= ranks;
  EXPECT_EQ(sum.value(), term * static_cast<double>(ranks));
  ExactSum copy = sum;
  copy.normalise();
  EXPECT_EQ(copy.value(), sum.value());
  ExactSum joined;
  for (int i = 0; i < 4; ++i) joined.add(sum);
  for (int i = 0; i < 100; ++i) sum.add(term);
  EXPECT_EQ(sum.value(), term * static_cast<double>(ranks + 100));
  EXPECT_EQ(joined.value(), term * static_cast<double>(4 * ranks));
}

TEST(ExactSum, WrittenLimbsAreCarriedBeforeTheNextAdd) {
  ExactSum sum;
  sum.limbs()[10] = std::numeric_limits<std::int64_t>::max() - 5;
  const double before = sum.value();
  sum.add(std::ldexp(15.0, 10 * 32 - 1074));
  EXPECT_EQ(before, 0x1p63 * std::ldexp(1.0, 10 * 32 - 1074));
  EXPECT_EQ(sum.value(), before);
}

TEST(ExactSum, BeyondTheLargestDouble) {
  const double largest = std::numeric_limits<double>::max();
  ExactSum sum = sum_of({largest, largest, largest});
  EXPECT_EQ(sum.value(), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(sum.finite());
  sum.add(-largest);
  sum.add(-largest);
  EXPECT_EQ(sum.value(), largest);
}

TEST(ExactSum, NotFiniteTermsAreCounted) {
  const double infinity = std::numeric_limits<double>::infinity();
  ExactSum sum = sum_of({1.0, infinity, -infinity, std::nan("")});
  EXPECT_FALSE(sum.finite());
  EXPECT_FALSE(std::isfinite(sum.value()));
  EXPECT_EQ(sum.limbs()[ExactSum::kLimbs - 1], 3);
  ExactSum other = sum_of({2.0});
  other.add(sum);
  EXPECT_FALSE(other.finite());
}

}  // namespace
}  // namespace gemini::test
