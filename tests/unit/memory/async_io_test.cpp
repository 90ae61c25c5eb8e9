// Transfers of files: cut, continued, in any order, and told when they fail.
#include "memory/async_io.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <thread>

#include "file_test_support.hpp"
#include "memory/descriptor.hpp"

namespace gemini::test {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = kKiB * kKiB;

class AsyncIoTest : public testing::TestWithParam<AsyncIo::Engine> {
 protected:
  [[nodiscard]] Descriptor open_new(int flags = O_RDWR) const {
    return Descriptor(open((directory_.path() + "/file").c_str(), flags | O_CREAT | O_CLOEXEC, 0600));
  }
  Directory directory_;
};
INSTANTIATE_TEST_SUITE_P(Engines, AsyncIoTest,
                         testing::Values(AsyncIo::Engine::best, AsyncIo::Engine::thread), engine_name);

// More pieces than are under way at once
TEST_P(AsyncIoTest, CutsTransfersIntoPieces) {
  const Descriptor file = open_new();
  AsyncIo io(GetParam(), 64 * kKiB);
  const auto written = random_bytes(5 * kMiB + 7, 1);
  const auto size = static_cast<std::int64_t>(written.size());
  EXPECT_EQ(io.wait(io.write(file.get(), 3, written.data(), size)), 0);
  auto read = random_bytes(size, 2);
  EXPECT_EQ(io.wait(io.read(file.get(), 3, read.data(), size)), 0);
  EXPECT_EQ(read, written);
  EXPECT_EQ(io.bytes_written(), size);
  EXPECT_EQ(io.bytes_read(), size);
}

// Linux moves less than 2 GiB in one call: the rest is asked for again.
TEST_P(AsyncIoTest, ContinuesShortWrites) {
  if (kThreadSanitizer) GTEST_SKIP() << "takes many GiB";
  const Descriptor nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  constexpr std::int64_t kSize = 3 * kKiB * kMiB;
  void* untouched = mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(untouched, MAP_FAILED);
  AsyncIo io(GetParam(), kSize);
  EXPECT_EQ(io.wait(io.write(nowhere.get(), 0, untouched, kSize)), 0);
  EXPECT_EQ(io.bytes_written(), kSize);
  munmap(untouched, kSize);
}

TEST_P(AsyncIoTest, AReadPastTheEndBringsWhatIsThereAndFails) {
  const Descriptor file = open_new();
  AsyncIo io(GetParam());
  const auto written = random_bytes(5000, 3);
  EXPECT_EQ(io.wait(io.write(file.get(), 0, written.data(), 5000)), 0);
  std::vector<unsigned char> read(9000);
  EXPECT_EQ(io.wait(io.read(file.get(), 0, read.data(), 9000)), ENODATA);
  EXPECT_TRUE(std::equal(written.begin(), written.end(), read.begin()));
}

TEST_P(AsyncIoTest, AWriteThatIsCutShortFailsWhereTheLimitIs) {
  const Descriptor file = open_new();
  AsyncIo io(GetParam());
  const auto written = random_bytes(100 * kKiB, 4);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  {
    const Limit limit(RLIMIT_FSIZE, 50 * kKiB);
    EXPECT_EQ(io.wait(io.write(file.get(), 0, written.data(), 100 * kKiB)), EFBIG);
  }
  std::signal(SIGXFSZ, old);
  std::vector<unsigned char> read(50 * kKiB);
  EXPECT_EQ(io.wait(io.read(file.get(), 0, read.data(), 50 * kKiB)), 0);
  EXPECT_TRUE(std::equal(read.begin(), read.end(), written.begin()));
}

TEST_P(AsyncIoTest, TellsAFailureOnce) {
  const Descriptor full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  const Descriptor file = open_new(O_RDONLY);
  AsyncIo io(GetParam());
  const char byte = 1;
  const Transfer no_space = io.write(full.get(), 0, &byte, 1);
  const Transfer read_only = io.write(file.get(), 0, &byte, 1);
  EXPECT_EQ(io.wait(read_only), EBADF);
  while (!io.done(no_space)) std::this_thread::yield();
  EXPECT_TRUE(io.done(no_space));
  EXPECT_EQ(io.wait(no_space), ENOSPC);
  EXPECT_EQ(io.wait(no_space), 0);
  EXPECT_EQ(io.bytes_written(), 0);
}

TEST_P(AsyncIoTest, ManyTransfersAreWaitedForInAnyOrder) {
  const Descriptor file = open_new();
  AsyncIo io(GetParam());
  constexpr std::int64_t kCount = 200;
  constexpr std::int64_t kSize = 3000;
  const auto written = random_bytes(kCount * kSize, 5);
  std::vector<unsigned char> read(written.size());
  std::vector<Transfer> transfers;
  for (std::int64_t i = kCount; i-- > 0;)
    transfers.push_back(io.write(file.get(), i * kSize, written.data() + i * kSize, kSize));
  std::shuffle(transfers.begin(), transfers.end(), std::mt19937(6));
  for (const Transfer transfer : transfers) EXPECT_EQ(io.wait(transfer), 0);
  transfers.clear();
  for (std::int64_t i = 0; i < kCount; ++i)
    transfers.push_back(io.read(file.get(), i * kSize, read.data() + i * kSize, kSize));
  std::shuffle(transfers.begin(), transfers.end(), std::mt19937(7));
  for (const Transfer transfer : transfers)
    while (!io.done(transfer)) std::this_thread::yield();
  EXPECT_EQ(read, written);
}

TEST_P(AsyncIoTest, NothingIsDoneAtOnce) {
  AsyncIo io(GetParam());
  const Transfer nothing = io.read(-1, 0, nullptr, 0);
  EXPECT_TRUE(io.done(nothing));
  EXPECT_EQ(io.wait(nothing), 0);
}

TEST_P(AsyncIoTest, ItsEndFinishesWhatWasBegun) {
  const Descriptor file = open_new();
  const auto written = random_bytes(4 * kMiB, 8);
  { AsyncIo(GetParam(), 16 * kKiB).write(file.get(), 0, written.data(), 4 * kMiB); }
  std::vector<unsigned char> read(written.size());
  ASSERT_EQ(pread(file.get(), read.data(), read.size(), 0), 4 * kMiB);
  EXPECT_EQ(read, written);
}

// The kernel ties what is under way to the thread that asked for it.
TEST_P(AsyncIoTest, AThreadThatEndsLeavesItsTransfersToTheNext) {
  const Descriptor file = open_new();
  const auto written = random_bytes(8 * kMiB, 9);
  AsyncIo io(GetParam(), 256 * kKiB);
  Transfer transfer = 0;
  std::thread([&] { transfer = io.write(file.get(), 0, written.data(), 8 * kMiB); }).join();
  EXPECT_EQ(io.wait(transfer), 0);
  std::vector<unsigned char> read(written.size());
  std::thread([&] { transfer = io.read(file.get(), 0, read.data(), 8 * kMiB); }).join();
  EXPECT_EQ(io.wait(transfer), 0);
  EXPECT_EQ(read, written);
}

TEST(AsyncIo, AThreadServesWhereTheKernelGivesNoRing) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UBSan takes descriptors of its own to look at what a thread runs";
#endif
  const Limit no_more_descriptors(RLIMIT_NOFILE, 3);
  const AsyncIo io(AsyncIo::Engine::best);
  EXPECT_STREQ(io.engine(), "thread");
}

}  // namespace
}  // namespace gemini::test
