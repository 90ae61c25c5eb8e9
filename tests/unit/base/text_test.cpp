// Numbers and sizes that people write.
#include "base/text.hpp"

#include <gtest/gtest.h>

#include "base/fingerprint.hpp"

namespace gemini::text {
namespace {

constexpr std::int64_t kMany = std::int64_t{1} << 53;

TEST(ParseInteger, TakesWholeNumbersInAnyNotation) {
  EXPECT_EQ(parse_integer("0"), 0);
  EXPECT_EQ(parse_integer("42"), 42);
  EXPECT_EQ(parse_integer("-7"), -7);
  EXPECT_EQ(parse_integer("1e6"), 1000000);
  EXPECT_EQ(parse_integer("1.5e1"), 15);
  EXPECT_EQ(parse_integer(" 8 "), 8);
  EXPECT_EQ(parse_integer("9007199254740992"), kMany);
  EXPECT_EQ(parse_integer("-9007199254740992"), -kMany);
}

TEST(ParseInteger, RefusesWhatADoubleDoesNotHoldExactly) {
  EXPECT_EQ(parse_integer("9007199254740994"), std::nullopt);
  EXPECT_EQ(parse_integer("1e300"), std::nullopt);
}

TEST(ParseInteger, RefusesTheRest) {
  for (const char* wrong : {"", " ", "1.5", "1e-3", "abc", "12x", "1 2", "inf", "nan", "1,000", "--1"})
    EXPECT_EQ(parse_integer(wrong), std::nullopt) << wrong;
}

TEST(ParseReal, TakesFiniteNumbers) {
  EXPECT_EQ(parse_real("1e-3"), 1e-3);
  EXPECT_EQ(parse_real("-0.5"), -0.5);
  EXPECT_EQ(parse_real("\t2\n"), 2.0);
  EXPECT_EQ(parse_real("5e-324"), 5e-324);
  for (const char* wrong : {"", "x", "1e999", "inf", "-inf", "nan", "1..2", "0.1f"})
    EXPECT_EQ(parse_real(wrong), std::nullopt) << wrong;
}

TEST(ParseBytes, KnowsBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("1024"), 1024);
  EXPECT_EQ(parse_bytes("1024B"), 1024);
  EXPECT_EQ(parse_bytes("3KiB"), 3 << 10);
  EXPECT_EQ(parse_bytes("512 MiB"), 512 << 20);
  EXPECT_EQ(parse_bytes("8GiB"), std::int64_t{8} << 30);
  EXPECT_EQ(parse_bytes(" 2TiB "), std::int64_t{2} << 40);
  EXPECT_EQ(parse_bytes("3KB"), 3000);
  EXPECT_EQ(parse_bytes("1.5MB"), 1500000);
  EXPECT_EQ(parse_bytes("1.5GB"), 1500000000);
  EXPECT_EQ(parse_bytes("0.5KiB"), 512);
  EXPECT_EQ(parse_bytes("1e3"), 1000);
  EXPECT_EQ(parse_bytes("8000000TiB"), std::int64_t{8000000} << 40);
}

TEST(ParseBytes, RefusesTheRest) {
  for (const char* wrong :
       {"", "-1", "GiB", "8 G", "8gib", "8GiBx", "nan", "inf", "1e40", "8388608TiB", "1 2"})
    EXPECT_EQ(parse_bytes(wrong), std::nullopt) << wrong;
}

TEST(FormatBytes, TellsAUnitAndTheExactNumber) {
  EXPECT_EQ(format_bytes(0), "0 bytes");
  EXPECT_EQ(format_bytes(1023), "1023 bytes");
  EXPECT_EQ(format_bytes(1024), "1 KiB (1024 bytes)");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB (1536 bytes)");
  EXPECT_EQ(format_bytes(std::int64_t{3} << 30), "3 GiB (3221225472 bytes)");
}

TEST(Trim, TakesBlanksOffBothEnds) {
  EXPECT_EQ(trim("  a b\t\r\n"), "a b");
  EXPECT_EQ(trim(""), "");
  EXPECT_EQ(trim(" \n\t"), "");
}

TEST(Nearest, NamesTheClosestFirst) {
  const std::vector<std::string_view> names = {"momentum", "prefetch", "placement", "beta1", "beta2", "lr"};
  ASSERT_FALSE(nearest("momentun", names).empty());
  EXPECT_EQ(nearest("momentun", names).front(), "momentum");
  EXPECT_EQ(nearest("prefetsh", names).front(), "prefetch");
  EXPECT_EQ(nearest("beta", names), (std::vector<std::string>{"beta1", "beta2"}));
}

TEST(Nearest, NamesOneWhereNoneLooksAlike) {
  EXPECT_EQ(nearest("leraning_rate", {"placement", "hysteresis", "lr"}).size(), 1u);
  EXPECT_TRUE(nearest("lr", {}).empty());
}

TEST(Nearest, NamesAtMostThree) {
  EXPECT_EQ(nearest("beta0", {"beta1", "beta2", "beta3", "beta4", "beta5"}).size(), 3u);
}

// XXH3 of 64 bits; the values are of its own test vectors.
TEST(Fingerprint, IsXxh3) {
  EXPECT_EQ(fingerprint(""), 0x2D06800538D394C2u);
  EXPECT_EQ(fingerprint("gemini"), fingerprint("gemini", 6, 0));
  EXPECT_NE(fingerprint("gemini"), fingerprint("gemini", 1));
  EXPECT_NE(fingerprint("ab"), fingerprint("ba"));
}

}  // namespace
}  // namespace gemini::text
