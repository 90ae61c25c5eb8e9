// Arrays in e4m3 with a scale per block
#include "kernels/float8.hpp"

#include <algorithm>
#include <limits>

#include "guarded.hpp"
#include "kernels/convert.hpp"

namespace gemini::test {
namespace {

using kernels::encoded_bytes;
using kernels::float_of;
using kernels::kFloat8Block;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Float8Arrays, TakeCodesPaddingAndScales) {
  EXPECT_EQ(encoded_bytes(0), 0);
  EXPECT_EQ(encoded_bytes(1), 8);
  EXPECT_EQ(encoded_bytes(127), 132);
  EXPECT_EQ(encoded_bytes(128), 132);
  EXPECT_EQ(encoded_bytes(129), 140);
  EXPECT_EQ(encoded_bytes(std::int64_t{1} << 40), (std::int64_t{1} << 40) / 32 * 33);
}

using Words = std::vector<std::uint32_t>;

Words encode(const Guarded& x) {
  Words words(static_cast<std::size_t>(encoded_bytes(x.count()) / 4 + 1), 0xa5c396e1);
  kernels::encode_float8(x.type(), x.data(), x.count(), words.data());
  EXPECT_EQ(words.back(), 0xa5c396e1) << "wrote past the end";
  words.pop_back();
  return words;
}

Guarded decode(const Words& words, const Guarded& like) {
  Guarded y = like;
  kernels::decode_float8(words.data(), like.count(), like.type(), y.data());
  return y;
}

float scale_of(const Words& words, std::int64_t count, std::int64_t block) {
  return float_of(words[static_cast<std::size_t>((count + 3) / 4 + block)]);
}

// Of codes that are NaN the sign is free.
std::vector<std::uint8_t> without_nan_signs(const Words& words, std::int64_t count) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(words.data());
  std::vector<std::uint8_t> bytes(first, first + words.size() * 4);
  std::replace(bytes.begin(), bytes.begin() + count, std::uint8_t{0xff}, std::uint8_t{0x7f});
  return bytes;
}

void equals_reference(const Guarded& x) {
  const Words words = encode(x);
  Words expected(words.size());
  reference::encode_float8(x.type(), x.data(), x.count(), expected.data());
  ASSERT_EQ(without_nan_signs(words, x.count()), without_nan_signs(expected, x.count()));
  const Guarded y = decode(words, x);
  Guarded back = x;
  reference::decode_float8(words.data(), x.count(), x.type(), back.data());
  ASSERT_TRUE(same(y, back));
}

TEST(Float8Arrays, EqualTheReferenceBitForBit) {
  for_all_shapes([](DType type, std::int64_t count, std::int64_t offset) {
    for (const double width : {1.0, 1e-3, 1e-6, 3e4}) {
      Guarded x(type, count, offset);
      equals_reference(x.random(2, width));
      if (testing::Test::HasFatalFailure()) return;
    }
    Guarded x(type, count, offset);
    equals_reference(x.any_bits(3));
  });
}

// Magnitudes from all over the type's range, but alike within a block
TEST(Float8Arrays, EqualTheReferenceAtEveryScale) {
  for (const DType type : kFloating) {
    Guarded x(type, 2300 * kFloat8Block, 0);
    std::mt19937_64 engine(4);
    for (std::int64_t i = 0; i < x.count(); ++i) {
      const int exponent = static_cast<int>(i / kFloat8Block) - 1150 - static_cast<int>(engine() % 12);
      reference::store(type, x.data(), i, std::ldexp(static_cast<double>(engine() >> 11), exponent - 53));
    }
    equals_reference(x);
  }
}

TEST(Float8Arrays, ErrorsStayWithinTheirBounds) {
  for (const DType type : kFloating) {
    Guarded x(type, 100 * kFloat8Block, 0);
    x.random(5);
    const Words words = encode(x);
    const Guarded y = decode(words, x);
    // The quotient, the product and 16-bit results are rounded too.
    const double rounding = 1.0 + (type == DType::bf16 ? 0x1p-4 : type == DType::f16 ? 0x1p-7 : 0x1p-19);
    for (std::int64_t i = 0; i < x.count(); ++i) {
      const auto scale = static_cast<double>(scale_of(words, x.count(), i / kFloat8Block));
      const double exact = reference::load(type, x.data(), i);
      const double error = std::fabs(reference::load(type, y.data(), i) - exact);
      ASSERT_LE(error, std::max(std::fabs(exact) * 0x1p-4, scale * 0x1p-10) * rounding) << name_of(type);
    }
  }
}

// The largest element comes back, whole or one rounding smaller: no type overflows.
TEST(Float8Arrays, TheLargestOfATypeStaysFinite) {
  for (const DType type : kFloating) {
    const double largest = type == DType::f16    ? 65504.0
                           : type == DType::bf16 ? 0x1.fep127
                                                 : static_cast<double>(std::numeric_limits<float>::max());
    Guarded x(type, 2, 0);
    reference::store(type, x.data(), 0, largest);
    reference::store(type, x.data(), 1, -largest);
    const Guarded y = decode(encode(x), x);
    EXPECT_LE(reference::load(type, y.data(), 0), largest) << name_of(type);
    EXPECT_GE(reference::load(type, y.data(), 0), largest * (1.0 - 0x1p-7)) << name_of(type);
    EXPECT_EQ(reference::load(type, y.data(), 1), -reference::load(type, y.data(), 0));
  }
  Guarded x(DType::f64, 1, 0);
  reference::store(DType::f64, x.data(), 0, std::numeric_limits<double>::max());
  const Guarded y = decode(encode(x), x);
  EXPECT_EQ(reference::load(DType::f64, y.data(), 0),
            448.0 * static_cast<double>(std::numeric_limits<float>::max()));
}

TEST(Float8Arrays, ZerosHaveScaleZeroAndKeepTheirSign) {
  for (const DType type : kFloating) {
    Guarded x(type, 2 * kFloat8Block, 0);
    for (std::int64_t i = 0; i < x.count(); ++i)
      reference::store(type, x.data(), i, i < kFloat8Block ? -0.0 : 448.0);
    const Words words = encode(x);
    EXPECT_EQ(scale_of(words, x.count(), 0), 0.0f);
    EXPECT_TRUE(same(decode(words, x), x));
  }
}

// They touch neither their neighbours nor the scale.
TEST(Float8Arrays, NanAndInfinityComeOutAsNan) {
  for (const DType type : kFloating) {
    for (const double around : {0.0, 1.0}) {
      for (const double special :
           {std::nan(""), static_cast<double>(kInfinity), -static_cast<double>(kInfinity)}) {
        Guarded x(type, kFloat8Block, 0);
        for (std::int64_t i = 0; i < x.count(); ++i)
          reference::store(type, x.data(), i, i == 7 ? special : around);
        const Guarded y = decode(encode(x), x);
        for (std::int64_t i = 0; i < x.count(); ++i) {
          const double value = reference::load(type, y.data(), i);
          if (i == 7) {
            EXPECT_TRUE(std::isnan(value)) << name_of(type) << " " << special;
          } else {
            EXPECT_NEAR(value, around, 0x1p-7) << name_of(type) << " " << special;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace gemini::test
