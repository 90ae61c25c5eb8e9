// Extents of the file tier: their room, and what they hold.
#include "memory/spill_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.hpp"
#include "file_test_support.hpp"
#include "memory/descriptor.hpp"
#include "memory/tier.hpp"

namespace gemini::test {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

TEST(Extents, AreWholePagesAndCounted) {
  const Directory directory;
  SpillFile file(directory.path());
  EXPECT_EQ(file.held(), 0);
  file.reserve(10 * kPage - 5);
  EXPECT_EQ(file.held(), 10 * kPage);
  {
    Extent a = file.allocate(1);
    const Extent b = file.allocate(3 * kPage + 1);
    EXPECT_EQ(a.bytes(), kPage);
    EXPECT_EQ(b.bytes(), 4 * kPage);
    EXPECT_EQ(file.in_use(), 5 * kPage);
    Extent c = std::move(a);
    EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(file.in_use(), 5 * kPage);
    c = Extent();
    EXPECT_EQ(file.in_use(), 4 * kPage);
    EXPECT_FALSE(file.allocate(0));
  }
  EXPECT_EQ(file.in_use(), 0);
  EXPECT_EQ(file.held(), 10 * kPage);
}

TEST(Extents, GoneGiveTheFilesRoomBack) {
  const Directory directory;
  SpillFile file(directory.path());
  file.reserve(8 * kPage);
  {
    const Extent used = file.allocate(kPage);
    file.give_back();
    EXPECT_EQ(file.held(), 8 * kPage) << "one is in use";
  }
  file.give_back();
  EXPECT_EQ(file.held(), 0);
  const Extent again = file.allocate(2 * kPage);
  EXPECT_TRUE(again.fresh());
  EXPECT_EQ(file.held(), 2 * kPage);
}

TEST(Extents, GivenBackInAnyOrderJoin) {
  const Directory directory;
  for (const auto& order :
       {std::array<std::size_t, 4>{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 1, 3}, {1, 3, 2, 0}}) {
    SpillFile file(directory.path());
    std::array<Extent, 4> extents;
    for (Extent& extent : extents) extent = file.allocate(2 * kPage);
    EXPECT_EQ(file.held(), 8 * kPage);
    for (const std::size_t i : order) {
      const Extent ended = std::move(extents[i]);
    }
    const Extent all = file.allocate(8 * kPage);
    EXPECT_EQ(file.held(), 8 * kPage);
  }
}

TEST(Extents, AreFreshWhereNothingWasBefore) {
  const Directory directory;
  SpillFile file(directory.path());
  file.reserve(8 * kPage);
  {
    const Extent first = file.allocate(2 * kPage);
    EXPECT_TRUE(first.fresh());
    EXPECT_TRUE(file.allocate(kPage).fresh());
  }
  EXPECT_FALSE(file.allocate(kPage).fresh());
  const Extent across = file.allocate(4 * kPage);
  EXPECT_FALSE(across.fresh()) << "its first pages were in use";
  EXPECT_TRUE(file.allocate(4 * kPage).fresh());
}

TEST(Extents, OnlyWhatIsMissingAtTheEndIsAdded) {
  const Directory directory;
  SpillFile file(directory.path());
  file.reserve(3 * kPage);
  const Extent small = file.allocate(kPage);
  const Extent large = file.allocate(5 * kPage);
  EXPECT_EQ(file.held(), 6 * kPage);
}

TEST(Extents, WithoutSpaceNothingChanges) {
  Directory directory;
  if (!directory.mount("tmpfs", "size=1m")) GTEST_SKIP() << "only root may mount";
  {
    SpillFile file(directory.path());
    EXPECT_THROW(file.reserve(2 * kMiB), Error);
    EXPECT_EQ(file.held(), 0);
    const Extent extent = file.allocate(kMiB / 2);
    EXPECT_THROW(file.allocate(kMiB), Error);
    const Extent rest = file.allocate(kMiB / 2);
    EXPECT_EQ(file.in_use(), kMiB);
  }
  EXPECT_EQ(directory.files(), 0u);
}

class SpillFileTest : public testing::TestWithParam<AsyncIo::Engine> {
 protected:
  Directory directory_;
};
INSTANTIATE_TEST_SUITE_P(Engines, SpillFileTest,
                         testing::Values(AsyncIo::Engine::best, AsyncIo::Engine::thread), engine_name);

TEST_P(SpillFileTest, FiveMiBGoThroughABufferOfFour) {
  SpillFile file(directory_.path(), GetParam());
  Tier memory("host_memory", 4 * kMiB);
  const Block buffer = memory.allocate(4 * kMiB, "a test");
  const Extent extent = file.allocate(5 * kMiB);
  const auto model = random_bytes(5 * kMiB, 1);
  for (const std::int64_t at : {std::int64_t{0}, 4 * kMiB}) {
    const std::int64_t size = std::min(4 * kMiB, 5 * kMiB - at);
    std::copy_n(model.data() + at, size, reinterpret_cast<unsigned char*>(buffer.data()));
    file.wait(file.write(extent, at, buffer.data(), size));
  }
  for (const std::int64_t at : {4 * kMiB, std::int64_t{0}}) {
    const std::int64_t size = std::min(4 * kMiB, 5 * kMiB - at);
    file.wait(file.read(extent, at, buffer.data(), size));
    EXPECT_TRUE(std::equal(model.data() + at, model.data() + at + size,
                           reinterpret_cast<const unsigned char*>(buffer.data())));
  }
  EXPECT_EQ(file.bytes_written(), 5 * kMiB);
  EXPECT_EQ(file.bytes_read(), 5 * kMiB);
}

TEST_P(SpillFileTest, TransfersStayInTheirExtent) {
  SpillFile file(directory_.path(), GetParam());
  const Extent extent = file.allocate(kPage);
  char byte = 0;
  EXPECT_THROW(file.read(extent, kPage, &byte, 1), Error);
  EXPECT_THROW(file.write(extent, -1, &byte, 1), Error);
  EXPECT_THROW(file.read(Extent(), 0, &byte, 1), Error);
}

TEST_P(SpillFileTest, AFileThatIsCutBehindOurBackIsFatalAndNamed) {
  SpillFile file(directory_.path(), GetParam());
  const Extent extent = file.allocate(kMiB);
  std::vector<char> bytes(static_cast<std::size_t>(kMiB));
  file.wait(file.write(extent, 0, bytes.data(), kMiB));
  ASSERT_EQ(truncate(file.path().c_str(), kMiB / 2), 0);
  try {
    file.wait(file.read(extent, 0, bytes.data(), kMiB));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), GEMINI_ERR_IO_FATAL);
    EXPECT_NE(std::string(error.what()).find(file.path()), std::string::npos) << error.what();
  }
}

// Pages of the file that the kernel keeps in memory
std::int64_t cached_pages(const SpillFile& file) {
  const Descriptor fd(open(file.path().c_str(), O_RDONLY | O_CLOEXEC));
  const auto size = static_cast<std::size_t>(file.held());
  void* view = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  std::vector<unsigned char> pages(size / kPage);
  EXPECT_EQ(mincore(view, size, pages.data()), 0);
  munmap(view, size);
  return std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
}

TEST_P(SpillFileTest, WholePagesLeaveNoCopyInThePageCache) {
  struct statfs system {};
  ASSERT_EQ(statfs(directory_.path().c_str(), &system), 0);
  if (system.f_type == TMPFS_MAGIC) GTEST_SKIP() << "a file system in memory";
  SpillFile file(directory_.path(), GetParam());
  Tier memory("host_memory", -1);
  const Block buffer = memory.allocate(kMiB, "a test");
  const Extent extent = file.allocate(kMiB);
  file.wait(file.write(extent, 0, buffer.data(), kMiB));
  file.wait(file.read(extent, 0, buffer.data(), kMiB));
  EXPECT_EQ(cached_pages(file), 0);
}

}  // namespace
}  // namespace gemini::test
