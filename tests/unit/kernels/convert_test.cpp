#include "kernels/convert.hpp"

#include <fstream>
#include <sstream>
#include <string>

#include "guarded.hpp"
#include "kernels/kernels.hpp"

namespace gemini::test {
namespace {

using kernels::bits_of;
using kernels::convert_to;
using kernels::float_of;

bool is_nan16(unsigned bits, unsigned infinity) {
  return (bits & 0x7fffu) > infinity;
}

TEST(Convert, GoldenRows) {
  std::ifstream file(GEMINI_TEST_DATA "/golden/convert_16bit.txt");
  std::string line;
  int rows = 0;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    unsigned from = 0, half = 0, bfloat = 0;
    words >> std::hex >> from >> half >> bfloat;
    ++rows;
    const unsigned h = convert_to<Half>(float_of(from)).bits, b = convert_to<BFloat16>(float_of(from)).bits;
    if (std::isnan(float_of(from))) {
      EXPECT_TRUE(is_nan16(h, 0x7c00) && is_nan16(b, 0x7f80)) << line;
    } else {
      EXPECT_EQ(h, half) << line;
      EXPECT_EQ(b, bfloat) << line;
    }
  }
  EXPECT_EQ(rows, 27);
}

// Every pattern has its value by definition and comes back through both wider types.
template <class T>
void round_trips(int exponent_bits, int mantissa_bits, unsigned infinity) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const T x{static_cast<std::uint16_t>(bits)};
    const auto f = convert_to<float>(x);
    const auto d = convert_to<double>(x);
    if (is_nan16(bits, infinity)) {
      ASSERT_TRUE(std::isnan(f) && std::isnan(d)) << bits;
      ASSERT_TRUE(is_nan16(convert_to<T>(f).bits, infinity)) << bits;
      ASSERT_TRUE(is_nan16(convert_to<T>(d).bits, infinity)) << bits;
      continue;
    }
    const double value = reference::decode16(x.bits, exponent_bits, mantissa_bits);
    ASSERT_EQ(bits_of(static_cast<double>(f)), bits_of(value)) << bits;
    ASSERT_EQ(bits_of(d), bits_of(value)) << bits;
    ASSERT_EQ(convert_to<T>(f).bits, bits);
    ASSERT_EQ(convert_to<T>(d).bits, bits);
  }
}

TEST(Convert, AllHalvesRoundTrip) {
  round_trips<Half>(5, 10, 0x7c00);
}
TEST(Convert, AllBFloat16sRoundTrip) {
  round_trips<BFloat16>(8, 7, 0x7f80);
}

void check_both(double d) {
  ASSERT_EQ(convert_to<Half>(d).bits, reference::encode16(d, 5, 10)) << std::hexfloat << d;
  ASSERT_EQ(convert_to<BFloat16>(d).bits, reference::encode16(d, 8, 7)) << std::hexfloat << d;
  const auto f = static_cast<float>(d);
  ASSERT_EQ(convert_to<Half>(f).bits, reference::encode16(static_cast<double>(f), 5, 10)) << f;
  ASSERT_EQ(convert_to<BFloat16>(f).bits, reference::encode16(static_cast<double>(f), 8, 7)) << f;
}

TEST(Convert, RandomValuesRoundToNearestEven) {
  std::mt19937_64 engine(1);
  for (int i = 0; i < 200000; ++i) {
    const float f = float_of(static_cast<std::uint32_t>(engine()));
    if (!std::isnan(f)) check_both(f);
    const double d = kernels::double_of(engine());
    if (!std::isnan(d)) check_both(d);
    // dense where halves are normal or subnormal
    check_both(std::ldexp(static_cast<double>(engine() >> 11), -53 - static_cast<int>(engine() % 42)) *
               65600.0);
    if (HasFatalFailure()) return;
  }
}

// Between each pair of neighbours: the tie, and what lies just beside it in float and in double, where
// rounding to float first would make a tie of it.
template <class T>
void check_ties(int exponent_bits, int mantissa_bits, unsigned infinity) {
  for (unsigned bits = 0; bits + 1 < infinity; ++bits) {
    const double low = reference::decode16(static_cast<std::uint16_t>(bits), exponent_bits, mantissa_bits);
    const double high =
        reference::decode16(static_cast<std::uint16_t>(bits + 1), exponent_bits, mantissa_bits);
    const double tie = low + (high - low) / 2;
    const unsigned even = bits + (bits & 1u);
    for (const double sign : {1.0, -1.0}) {
      const unsigned s = sign < 0 ? 0x8000u : 0u;
      ASSERT_EQ(convert_to<T>(sign * tie).bits, s | even) << tie;
      ASSERT_EQ(convert_to<T>(sign * std::nextafter(tie, 0.0)).bits, s | bits) << tie;
      ASSERT_EQ(convert_to<T>(sign * std::nextafter(tie, 1e308)).bits, s | (bits + 1)) << tie;
      const auto narrow = static_cast<float>(sign * tie);
      ASSERT_EQ(convert_to<T>(narrow).bits, s | even) << tie;
      ASSERT_EQ(convert_to<T>(std::nextafter(narrow, 0.0f)).bits, s | bits) << tie;
    }
  }
}

TEST(Convert, HalfTiesAndTheirNeighbours) {
  check_ties<Half>(5, 10, 0x7c00);
}
TEST(Convert, BFloat16TiesAndTheirNeighbours) {
  check_ties<BFloat16>(8, 7, 0x7f80);
}

TEST(Convert, EndsOfTheRange) {
  EXPECT_EQ(convert_to<Half>(65519.9999999999).bits, 0x7bff);  // rounds to 65520 as a float, a tie
  EXPECT_EQ(convert_to<Half>(65520.0).bits, 0x7c00);
  EXPECT_EQ(convert_to<Half>(1e308).bits, 0x7c00);
  EXPECT_EQ(convert_to<BFloat16>(-1e308).bits, 0xff80);
  EXPECT_EQ(convert_to<Half>(5e-324).bits, 0x0000);
  EXPECT_EQ(convert_to<BFloat16>(-5e-324).bits, 0x8000);
  EXPECT_EQ(convert_to<Half>(0x1.0000000000001p-25).bits, 0x0001);
  EXPECT_EQ(convert_to<BFloat16>(0x1.0000000000001p-134).bits, 0x0001);
  EXPECT_EQ(bits_of(convert_to<float>(0x1p-149)), 1u);  // subnormal floats are kept
}

// Payloads whose upper bits are all zero, or carry into the sign when rounded
TEST(Convert, NanStaysNan) {
  for (const std::uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu, 0x7fc00000u}) {
    EXPECT_TRUE(is_nan16(convert_to<Half>(float_of(bits)).bits, 0x7c00)) << bits;
    EXPECT_TRUE(is_nan16(convert_to<BFloat16>(float_of(bits)).bits, 0x7f80)) << bits;
  }
  for (const std::uint64_t bits : {0x7ff0000000000001u, 0x7fffffffffffffffu, 0xffffffffffffffffu}) {
    EXPECT_TRUE(is_nan16(convert_to<Half>(kernels::double_of(bits)).bits, 0x7c00)) << bits;
    EXPECT_TRUE(is_nan16(convert_to<BFloat16>(kernels::double_of(bits)).bits, 0x7f80)) << bits;
  }
}

TEST(Convert, EveryPairOfTypesAtEveryPlace) {
  for (const DType to : kFloating) {
    for_all_shapes([&](DType from, std::int64_t count, std::int64_t offset) {
      for (const bool any : {false, true}) {
        Guarded x(from, count, offset), y(to, count, 3 - offset);
        any ? x.any_bits(8) : x.random(8, 0.001);
        Guarded expected = y;
        kernels::convert(from, x.data(), to, y.data(), count);
        reference::convert(from, x.data(), to, expected.data(), count);
        EXPECT_TRUE(same(y, expected)) << "to " << name_of(to);
      }
    });
  }
}

}  // namespace
}  // namespace gemini::test
