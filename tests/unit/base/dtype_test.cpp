// Tables over the element types.
#include "base/dtype.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace gemini {
namespace {

struct Row {
  DType type;
  std::int32_t value;
  std::int64_t size;
  const char* name;
  bool floating, narrow;
  DType sums;
};
constexpr Row kRows[] = {
    {DType::f64, 1, 8, "f64", true, false, DType::f64},  {DType::f32, 2, 4, "f32", true, false, DType::f32},
    {DType::f16, 3, 2, "f16", true, true, DType::f32},   {DType::bf16, 4, 2, "bf16", true, true, DType::f32},
    {DType::i32, 5, 4, "i32", false, false, DType::f32}, {DType::i64, 6, 8, "i64", false, false, DType::f32},
};

TEST(DType, TablesAgreeWithTheContract) {
  for (const Row& row : kRows) {
    EXPECT_EQ(static_cast<std::int32_t>(row.type), row.value);
    EXPECT_EQ(size_of(row.type), row.size) << row.name;
    EXPECT_STREQ(name_of(row.type), row.name);
    EXPECT_EQ(is_floating(row.type), row.floating) << row.name;
    EXPECT_EQ(is_16bit(row.type), row.narrow) << row.name;
    EXPECT_TRUE(is_valid(row.value));
    if (row.floating) {
      EXPECT_EQ(wide(row.type), row.sums) << row.name;
    }
  }
  for (const std::int32_t wrong : {-1, 0, 7, 100}) EXPECT_FALSE(is_valid(wrong));
}

TEST(DType, WithFloatingFindsTheTypeOfTheSize) {
  for (const Row& row : kRows) {
    const auto size = [&] {
      return with_floating(row.type, [](auto tag) { return sizeof(typename decltype(tag)::type); });
    };
    if (row.floating) {
      EXPECT_EQ(static_cast<std::int64_t>(size()), row.size) << row.name;
    } else {
      EXPECT_THROW(size(), Error) << row.name;
    }
  }
}

TEST(Status, EveryValueHasItsName) {
  for (int status = GEMINI_ERR_CALLBACK; status <= GEMINI_ERR_NOT_FOUND; ++status) {
    const char* name = status_name(static_cast<gemini_status_t>(status));
    EXPECT_EQ(std::strncmp(name, status == 0 ? "GEMINI_SUCCESS" : "GEMINI_ERR_", 11), 0) << status;
  }
  EXPECT_STREQ(status_name(static_cast<gemini_status_t>(77)), "unknown status");
}

}  // namespace
}  // namespace gemini
