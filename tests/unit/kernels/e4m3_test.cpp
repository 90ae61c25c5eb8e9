// Single values in e4m3
#include "kernels/e4m3.hpp"

#include <limits>

#include "guarded.hpp"

namespace gemini::test {
namespace {

using kernels::bits_of;
using kernels::Float8;
using kernels::float8_of;
using kernels::float_of;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Float8, EveryCodeHasItsValueAndComesBack) {
  for (unsigned bits = 0; bits < 256; ++bits) {
    const Float8 code{static_cast<std::uint8_t>(bits)};
    const float value = float_of(code);
    ASSERT_EQ(float8_of(value).bits, bits);
    if ((bits & 0x7f) == 0x7f) {
      ASSERT_TRUE(std::isnan(value)) << bits;
    } else {
      ASSERT_EQ(bits_of(static_cast<double>(value)), bits_of(reference::decode8(code.bits))) << bits;
    }
  }
  EXPECT_EQ(float_of(Float8{0x7e}), 448.0f);
  EXPECT_EQ(float_of(Float8{0x08}), 0x1p-6f);
  EXPECT_EQ(float_of(Float8{0x01}), 0x1p-9f);
  EXPECT_EQ(float_of(Float8{0x38}), 1.0f);
}

// Between each pair of neighbours: the tie, and the floats beside it
TEST(Float8, TiesGoToEven) {
  for (unsigned bits = 0; bits < 0x7e; ++bits) {
    const float low = float_of(Float8{static_cast<std::uint8_t>(bits)});
    const float high = float_of(Float8{static_cast<std::uint8_t>(bits + 1)});
    const float tie = low + (high - low) / 2;
    for (const float sign : {1.0f, -1.0f}) {
      const unsigned s = sign < 0 ? 0x80u : 0u;
      ASSERT_EQ(float8_of(sign * tie).bits, s | (bits + (bits & 1u))) << tie;
      ASSERT_EQ(float8_of(sign * std::nextafter(tie, 0.0f)).bits, s | bits) << tie;
      ASSERT_EQ(float8_of(sign * std::nextafter(tie, kInfinity)).bits, s | (bits + 1)) << tie;
    }
  }
}

TEST(Float8, EndsOfTheRange) {
  for (const float x : {448.0f, 464.0f, 465.0f, 1e30f, std::numeric_limits<float>::max()}) {
    EXPECT_EQ(float8_of(x).bits, 0x7e) << x;
    EXPECT_EQ(float8_of(-x).bits, 0xfe) << x;
  }
  EXPECT_EQ(float8_of(kInfinity).bits, 0x7f);
  EXPECT_EQ(float8_of(-kInfinity).bits, 0xff);
  for (const std::uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu})
    EXPECT_EQ(float8_of(float_of(bits)).bits & 0x7fu, 0x7fu) << bits;
  EXPECT_EQ(float8_of(0x1p-10f).bits, 0x00);
  EXPECT_EQ(float8_of(-0x1p-149f).bits, 0x80);
}

TEST(Float8, RandomFloatsRoundToTheNearest) {
  std::mt19937_64 engine(1);
  for (int i = 0; i < 100000; ++i) {
    const float any = float_of(static_cast<std::uint32_t>(engine()));
    const float in_range = std::ldexp(static_cast<float>(engine() >> 40), -static_cast<int>(engine() % 40));
    for (const float x : {any, in_range}) {
      if (!std::isnan(x)) {
        ASSERT_EQ(float8_of(x).bits, reference::encode8(static_cast<double>(x))) << x;
      }
    }
  }
}

}  // namespace
}  // namespace gemini::test
