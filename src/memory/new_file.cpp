#include "memory/new_file.hpp"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/error.hpp"

namespace gemini {
namespace {

// A rename lasts once its directory is on disk. Where a directory cannot be synced nothing can be done.
void sync_directory_of(const std::string& path) {
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  const Descriptor opened(open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_CLOEXEC));
  if (opened) fsync(opened.get());
}

bool is_no_plain_file(const std::string& path) {
  std::error_code unknown;
  const auto status = std::filesystem::status(path, unknown);
  return std::filesystem::exists(status) && std::filesystem::is_other(status);
}

}  // namespace

NewFile::NewFile(std::string path)
    : path_(std::move(path)),
      in_place_(is_no_plain_file(path_)),
      name_(in_place_ ? path_ : fmt::format("{}.{}.tmp", path_, getpid())) {
  file_ = Descriptor(open(name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file_) refuse(errno);
}

NewFile::~NewFile() {
  if (file_ && !kept_ && !in_place_) unlink(name_.c_str());
}

void NewFile::append(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file_.get(), text.data(), text.size());
    if (written < 0 && errno != EINTR) refuse(errno);
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void NewFile::keep() {
  kept_ = in_place_;
  if (kept_) return;
  if (fsync(file_.get()) != 0) refuse(errno);
  if (std::rename(name_.c_str(), path_.c_str()) != 0) refuse(errno);
  kept_ = true;
  sync_directory_of(path_);
}

void NewFile::refuse(int error) const {
  fail(GEMINI_ERR_IO, "{} cannot be written: {}", path_, words_of_errno(error));
}

std::string read_file(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) fail(GEMINI_ERR_NOT_FOUND, "there is no file {}", path);
  if (!file) fail(GEMINI_ERR_IO, "{} cannot be read: {}", path, words_of_errno(errno));
  std::string text;
  std::array<char, 1 << 16> piece{};
  for (;;) {
    const ssize_t got = read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno != EINTR) fail(GEMINI_ERR_IO, "{} cannot be read: {}", path, words_of_errno(errno));
    if (got == 0) return text;
    if (got > 0) text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace gemini
