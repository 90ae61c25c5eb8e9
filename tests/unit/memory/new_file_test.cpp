// Files that appear whole or not at all.
#include "memory/new_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>

#include "base/error.hpp"
#include "unit/memory/file_test_support.hpp"

namespace gemini {
namespace {

void write_file(const std::string& path, const std::string& text) {
  NewFile file(path);
  file.append(text.substr(0, text.size() / 2));
  file.append(text.substr(text.size() / 2));
  file.keep();
}

TEST(NewFile, HasAllOfItsTextAndLeavesNothingElse) {
  const test::Directory directory;
  const std::string path = directory.path() + "/a";
  const std::string text(300000, 'x');
  write_file(path, text + '\0' + "end");
  EXPECT_EQ(read_file(path), text + '\0' + "end");
  write_file(path, "");
  EXPECT_EQ(read_file(path), "");
  EXPECT_EQ(directory.files(), 1U);
}

TEST(NewFile, ThatIsNotKeptLeavesTheOlderOne) {
  const test::Directory directory;
  const std::string path = directory.path() + "/a";
  write_file(path, "older");
  {
    NewFile file(path);
    file.append("newer");
    EXPECT_EQ(read_file(path), "older");
  }
  EXPECT_EQ(read_file(path), "older");
  EXPECT_EQ(directory.files(), 1U);
}

TEST(NewFile, ThatDoesNotFitIsRefusedAndRemoved) {
  test::Directory directory;
  if (!directory.mount("tmpfs", "size=64k")) GTEST_SKIP() << "only root may mount";
  {
    NewFile file(directory.path() + "/a");
    EXPECT_THROW(file.append(std::string(1 << 20, 'x')), Error);
  }
  EXPECT_EQ(directory.files(), 0U);
}

TEST(NewFile, WritesToAPipeAndLeavesIt) {
  const test::Directory directory;
  const std::string path = directory.path() + "/pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const Descriptor reader(open(path.c_str(), O_RDONLY | O_NONBLOCK));
  write_file(path, "text");
  std::array<char, 8> got{};
  EXPECT_EQ(read(reader.get(), got.data(), got.size()), 4);
  EXPECT_STREQ(got.data(), "text");
  EXPECT_EQ(directory.files(), 1U);
  { const NewFile not_kept(path); }
  EXPECT_EQ(directory.files(), 1U);
}

gemini_status_t status_of_reading(const std::string& path) {
  try {
    read_file(path);
    return GEMINI_SUCCESS;
  } catch (const Error& error) {
    return error.status();
  }
}

TEST(NewFile, SaysWhatIsWrongWithAPath) {
  const test::Directory directory;
  EXPECT_EQ(status_of_reading(directory.path() + "/none"), GEMINI_ERR_NOT_FOUND);
  EXPECT_EQ(status_of_reading(directory.path()), GEMINI_ERR_IO);
  EXPECT_THROW(NewFile(directory.path() + "/none/a"), Error);
  NewFile onto_a_directory(directory.path());
  EXPECT_THROW(onto_a_directory.keep(), Error);
}

}  // namespace
}  // namespace gemini
