#include "kernels/random.hpp"

#include "guarded.hpp"
#include "kernels/philox.hpp"

namespace gemini::test {
namespace {

using kernels::Distribution;

constexpr std::uint64_t kKey = 0x0123456789abcdef;

void expect_words(const kernels::Philox& got, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                  std::uint32_t d) {
  EXPECT_EQ(got.word[0], a);
  EXPECT_EQ(got.word[1], b);
  EXPECT_EQ(got.word[2], c);
  EXPECT_EQ(got.word[3], d);
}

// The known answers of the Random123 distribution
TEST(Random, PhiloxKnownAnswers) {
  expect_words(kernels::philox({{0, 0, 0, 0}}, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
  const std::uint32_t ones = 0xffffffff;
  expect_words(kernels::philox({{ones, ones, ones, ones}}, ones, ones), 0x408f276d, 0x41c83b0e, 0xa20bc7c6,
               0x6d5451fd);
  expect_words(kernels::philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0),
               0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1);
}

TEST(Random, AgreesWithTheReference) {
  for (const std::int64_t first : {std::int64_t{0}, std::int64_t{4294967290}, std::int64_t{1} << 40}) {
    for_all_shapes([&](DType type, std::int64_t count, std::int64_t offset) {
      for (const Distribution d :
           {Distribution{Distribution::uniform, -2.0, 7.0}, Distribution{Distribution::normal, 0.5, 0.02}}) {
        Guarded x(type, count, offset), expected(type, count, offset);
        kernels::draw(type, d, kKey, first, count, x.data());
        reference::draw(type, d, kKey, first, count, expected.data());
        for (std::int64_t i = 0; i < count; ++i) {  // the reference may round up to b
          if (d.kind == Distribution::uniform && reference::load(type, expected.data(), i) >= d.b) {
            EXPECT_LT(reference::load(type, x.data(), i), d.b);
            reference::store(type, expected.data(), i, reference::load(type, x.data(), i));
          }
        }
        EXPECT_TRUE(same(x, expected));
      }
    });
  }
}

TEST(Random, DrawsDoNotDependOnCuts) {
  for (const DType type : kFloating) {
    for (const auto kind : {Distribution::uniform, Distribution::normal}) {
      const Distribution d{kind, 0.0, 1.0};
      Guarded whole(type, 30001, 0), parts(type, 30001, 0);
      kernels::draw(type, d, kKey, 1000, whole.count(), whole.data());
      for (std::int64_t begin = 0; begin < parts.count(); begin += 777) {
        const std::int64_t count = std::min<std::int64_t>(777, parts.count() - begin);
        kernels::draw(type, d, kKey, 1000 + begin, count, parts.at(begin));
      }
      EXPECT_TRUE(same(whole, parts));
    }
  }
}

TEST(Random, UniformStaysBelowItsEnd) {
  for (const DType type : kFloating) {
    for (const double b : {1.0, 0.0, -0.25}) {
      Guarded x(type, 1 << 17, 0);
      kernels::draw(type, {Distribution::uniform, b - 0.5, b}, kKey, 0, x.count(), x.data());
      for (std::int64_t i = 0; i < x.count(); ++i) {
        const double value = reference::load(type, x.data(), i);
        ASSERT_GE(value, b - 0.5);
        ASSERT_LT(value, b) << name_of(type);
      }
    }
  }
  double constant = 0.0;
  kernels::draw(DType::f64, {Distribution::uniform, 3.0, 3.0}, kKey, 0, 1, &constant);
  EXPECT_EQ(constant, 3.0);
}

struct Statistics {
  double mean = 0.0, deviation = 0.0, kurtosis = 0.0;
};

Statistics statistics(const std::vector<double>& x) {
  const auto n = static_cast<double>(x.size());
  Statistics s;
  for (const double v : x) s.mean += v / n;
  double second = 0.0, fourth = 0.0;
  for (const double v : x) {
    const double square = (v - s.mean) * (v - s.mean);
    second += square / n;
    fourth += square * square / n;
  }
  s.deviation = std::sqrt(second);
  s.kurtosis = fourth / (second * second);
  return s;
}

TEST(Random, MomentsArePlausible) {
  std::vector<double> x(1 << 20);
  const auto count = static_cast<std::int64_t>(x.size());
  kernels::draw(DType::f64, {Distribution::normal, 3.0, 2.0}, kKey, 0, count, x.data());
  const Statistics normal = statistics(x);
  EXPECT_NEAR(normal.mean, 3.0, 0.01);
  EXPECT_NEAR(normal.deviation, 2.0, 0.01);
  EXPECT_NEAR(normal.kurtosis, 3.0, 0.03);
  kernels::draw(DType::f64, {Distribution::uniform, -1.0, 1.0}, kKey + 1, 0, count, x.data());
  const Statistics uniform = statistics(x);
  EXPECT_NEAR(uniform.mean, 0.0, 0.005);
  EXPECT_NEAR(uniform.deviation, std::sqrt(1.0 / 3.0), 0.005);
  EXPECT_NEAR(uniform.kurtosis, 1.8, 0.01);
}

TEST(Random, KeysAndIndicesGiveDifferentDraws) {
  double a = 0, b = 0, c = 0;
  const Distribution d{Distribution::uniform, 0.0, 1.0};
  kernels::draw(DType::f64, d, 1, 5, 1, &a);
  kernels::draw(DType::f64, d, 2, 5, 1, &b);
  kernels::draw(DType::f64, d, 1, std::int64_t{5} + (std::int64_t{1} << 32), 1, &c);
  EXPECT_NE(a, b);
  EXPECT_NE(a, c);
}

}  // namespace
}  // namespace gemini::test
