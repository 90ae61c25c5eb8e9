// The process's memory follows what is touched.
#include "memory/process_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "file_test_support.hpp"

namespace gemini {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

TEST(ProcessMemory, ShowsWhatIsTouchedAndGivenBack) {
  if (test::kThreadSanitizer) GTEST_SKIP() << "other memory follows";
  constexpr std::int64_t kSize = 64 * kMiB, kElsewhere = 8 * kMiB;
  const ProcessMemory process;
  const std::int64_t before = process.resident();
  ASSERT_GT(before, 0);
  void* memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_LT(process.resident(), before + kElsewhere);
  std::memset(memory, 1, kSize);
  EXPECT_GT(process.resident(), before + kSize - kElsewhere);
  EXPECT_LT(process.resident(), before + kSize + kElsewhere);
  munmap(memory, kSize);
  EXPECT_LT(process.resident(), before + kElsewhere);
  EXPECT_GT(ProcessMemory::peak(), before + kSize - kElsewhere);
}

TEST(ProcessMemory, SeveralReadersAgree) {
  const ProcessMemory first;
  const ProcessMemory second;
  EXPECT_NEAR(static_cast<double>(first.resident()), static_cast<double>(second.resident()), 8.0 * kMiB);
  EXPECT_GE(ProcessMemory::peak() + 8 * kMiB, first.resident());
}

}  // namespace
}  // namespace gemini
