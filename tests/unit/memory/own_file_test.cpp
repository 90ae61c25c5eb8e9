// Files that have one owner: unique, locked, removed, and as large as was promised.
#include "memory/own_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "base/error.hpp"
#include "file_test_support.hpp"

namespace gemini::test {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

bool exists(const std::string& path) {
  return std::filesystem::exists(path);
}

std::string refusal(OwnFile& file, std::int64_t bytes) {
  try {
    file.grow(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), GEMINI_ERR_IO);
    return error.what();
  }
  return {};
}

// A process that owns a file until it is killed
class Owner {
 public:
  explicit Owner(const std::string& directory) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
    process_ = fork();
    if (process_ == 0) live(directory, ends[1]);
    close(ends[1]);
    std::array<char, 4096> name{};
    const ssize_t length = ::read(ends[0], name.data(), name.size());
    path_.assign(name.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    close(ends[0]);
  }
  ~Owner() { end(); }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  void end() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[noreturn]] static void live(const std::string& directory, int tell) {
    const OwnFile file(directory);
    const auto length = static_cast<ssize_t>(file.path().size());
    if (::write(tell, file.path().c_str(), file.path().size()) != length) _exit(1);
    for (;;) pause();
  }

  pid_t process_ = 0;
  std::string path_;
};

TEST(OwnFile, TwoInOneDirectoryLeaveEachOtherAlone) {
  const Directory directory;
  {
    const OwnFile first(directory.path());
    {
      const OwnFile second(directory.path());
      EXPECT_NE(first.path(), second.path());
      EXPECT_EQ(directory.files(), 2u);
    }
    EXPECT_TRUE(exists(first.path()));
    EXPECT_EQ(directory.files(), 1u);
  }
  EXPECT_EQ(directory.files(), 0u);
}

TEST(OwnFile, FilesOfKilledProcessesAreRemovedThoseOfOthersStay) {
  const Directory directory;
  Owner dead(directory.path());
  const Owner alive(directory.path());
  ASSERT_TRUE(exists(dead.path()) && exists(alive.path()));
  {
    const OwnFile file(directory.path());
    EXPECT_TRUE(exists(dead.path()) && exists(alive.path()));
  }
  dead.end();
  EXPECT_TRUE(exists(dead.path()));
  const OwnFile file(directory.path());
  EXPECT_FALSE(exists(dead.path()));
  EXPECT_TRUE(exists(alive.path()));
}

TEST(OwnFile, OnlyFilesOfThisHostAndKindAreLeftOvers) {
  const Directory directory;
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const std::string own = fmt::format("gemini-{}", host.data());
  const std::string old = own + "-4000000-12.spill";
  const std::vector<std::string> kept = {"gemini-another-4000000-1.spill", own + "-2-4000000-1.spill",
                                         own + "-4000000.spill",           own + "-4000000-.spill",
                                         own + "-4000000-1.spill.txt",     ".spill"};
  std::ofstream(directory.path() + "/" + old) << "left";
  for (const auto& name : kept) std::ofstream(directory.path() + "/" + name) << "mine";
  const OwnFile file(directory.path());
  EXPECT_FALSE(exists(directory.path() + "/" + old));
  for (const auto& name : kept) EXPECT_TRUE(exists(directory.path() + "/" + name)) << name;
}

TEST(OwnFile, NamesThatAreTakenArePassedOver) {
  const Directory directory;
  std::string next;
  {
    const OwnFile file(directory.path());
    next = file.path();
  }
  const auto number = next.rfind('-') + 1;
  next = next.substr(0, number) + std::to_string(std::stoi(next.substr(number)) + 1) + ".spill";
  std::filesystem::create_directory(next);
  const OwnFile file(directory.path());
  EXPECT_NE(file.path(), next);
}

TEST(OwnFile, WithoutADirectoryItIsRefusedWithItsName) {
  try {
    const OwnFile file("/no/such/place");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), GEMINI_ERR_IO);
    EXPECT_NE(std::string(error.what()).find("/no/such/place"), std::string::npos) << error.what();
  }
}

TEST(OwnFile, GrownBytesAreReallyTaken) {
  const Directory directory;
  OwnFile file(directory.path());
  file.grow(3 * kMiB);
  file.grow(2 * kMiB);
  EXPECT_EQ(file.bytes(), 3 * kMiB);
  struct stat taken {};
  ASSERT_EQ(fstat(file.fd(), &taken), 0);
  EXPECT_EQ(taken.st_size, 3 * kMiB);
  EXPECT_GE(taken.st_blocks * 512, 3 * kMiB);
}

TEST(OwnFile, BeyondTheLimitOfTheProcessItIsRefusedAsItWas) {
  const Directory directory;
  OwnFile file(directory.path());
  file.grow(kMiB);
  {
    const Limit limit(RLIMIT_FSIZE, 2 * kMiB);  // SIGXFSZ would end this process
    const std::string words = refusal(file, 8 * kMiB);
    for (const std::string& part : {directory.path(), std::string("8 MiB"), std::string("7 MiB")})
      EXPECT_NE(words.find(part), std::string::npos) << part << " in: " << words;
    EXPECT_EQ(file.bytes(), kMiB);
    file.grow(2 * kMiB);
  }
  file.grow(8 * kMiB);
}

TEST(OwnFile, WithoutSpaceItIsRefusedAndLeavesNothing) {
  Directory directory;
  if (!directory.mount("tmpfs", "size=1m")) GTEST_SKIP() << "only root may mount";
  {
    OwnFile file(directory.path());
    const std::string words = refusal(file, 5 * kMiB);
    for (const std::string& part :
         {directory.path(), std::string("5 MiB"), std::string("1048576 bytes) are free")})
      EXPECT_NE(words.find(part), std::string::npos) << part << " in: " << words;
    EXPECT_EQ(file.bytes(), 0);
    file.grow(kMiB / 2);
    EXPECT_NE(refusal(file, 2 * kMiB), "");
    EXPECT_EQ(file.bytes(), kMiB / 2);
    file.grow(kMiB);
  }
  EXPECT_EQ(directory.files(), 0u);
}

TEST(OwnFile, WhereTheFileSystemCannotReserveZerosAreWritten) {
  Directory directory;
  if (!directory.mount("ramfs", nullptr)) GTEST_SKIP() << "only root may mount";
  OwnFile file(directory.path());
  ASSERT_NE(fallocate(file.fd(), 0, 0, 4096), 0) << "this file system can";
  file.grow(kMiB);
  file.grow(kMiB + 200000);
  std::vector<char> bytes(static_cast<std::size_t>(kMiB + 200001), 1);
  EXPECT_EQ(pread(file.fd(), bytes.data(), bytes.size(), 0), kMiB + 200000);
  EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end() - 1, [](char byte) { return byte == 0; }));
}

}  // namespace
}  // namespace gemini::test
