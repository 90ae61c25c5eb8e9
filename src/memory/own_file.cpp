#include "memory/own_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/error.hpp"
#include "base/text.hpp"
#include "memory/page.hpp"

namespace gemini {
namespace {

constexpr std::string_view kEnding = ".spill";

// Names are gemini-<host>-<process>-<number>.spill. Hosts share directories, but may not see each other's
// locks: each cleans up its own.
std::string name_start() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("gemini-{}", host.data());
}

// Without "-<digits>" at its end; empty if it has none.
std::string_view without_number(std::string_view text) {
  const auto last = text.find_last_not_of("0123456789");
  if (last == std::string_view::npos || text[last] != '-' || last + 1 == text.size()) return {};
  return text.substr(0, last);
}

bool is_own_kind(std::string_view name) {
  if (name.size() < kEnding.size() || name.substr(name.size() - kEnding.size()) != kEnding) return false;
  return without_number(without_number(name.substr(0, name.size() - kEnding.size()))) == name_start();
}

bool lock(const Descriptor& file) {
  return flock(file.get(), LOCK_EX | LOCK_NB) == 0;
}

bool is_at(const Descriptor& file, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return fstat(file.get(), &opened) == 0 && lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Who holds the lock of the file that the name stands for may remove it; between opening and locking another
// may have done so, and the name may stand for a new file.
void remove_if_left_over(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (file && lock(file) && is_at(file, path)) unlink(path.c_str());
}

void remove_left_overs(const std::string& directory) {
  std::error_code ignored;  // one who may not look there may yet create a file
  for (std::filesystem::directory_iterator at(directory, ignored), end; at != end; at.increment(ignored))
    if (is_own_kind(at->path().filename().string())) remove_if_left_over(at->path().string());
}

// For file systems that cannot reserve: 0 or errno
int write_zeros(int fd, std::int64_t from, std::int64_t to) {
  static const std::array<char, 1 << 16> zeros{};
  while (from < to) {
    const auto size = std::min<std::int64_t>(to - from, zeros.size());
    const ssize_t written = pwrite(fd, zeros.data(), static_cast<std::size_t>(size), from);
    if (written < 0 && errno != EINTR) return errno;
    from += std::max<ssize_t>(written, 0);
  }
  return 0;
}

// fallocate, as glibc's posix_fallocate makes do with a byte in each block where the former does not work
int preallocate(int fd, std::int64_t from, std::int64_t to) {
  if (!may_grow_to(to)) return EFBIG;
  int result;
  do {
    result = fallocate(fd, 0, from, to - from);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return 0;
  return errno == EOPNOTSUPP ? write_zeros(fd, from, to) : errno;
}

}  // namespace

OwnFile::OwnFile(std::string directory) : directory_(std::move(directory)) {
  remove_left_overs(directory_);
  create();
}

OwnFile::~OwnFile() {
  remove_name();
}

void OwnFile::remove_name() noexcept {
  unlink(path_.c_str());
}

void OwnFile::create() {
  static std::atomic<int> number{0};
  for (;;) {
    path_ = fmt::format("{}/{}-{}-{}{}", directory_, name_start(), getpid(), number++, kEnding);
    file_ = Descriptor(open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file_ && errno == EEXIST) continue;
    if (!file_) fail(GEMINI_ERR_IO, "cannot create {}: {}", path_, words_of_errno(errno));
    // Before it was locked another process may have taken it for a left-over file. Where there are no locks
    // nobody can.
    const bool taken = !lock(file_) && errno == EWOULDBLOCK;
    if (!taken && is_at(file_, path_)) return;
  }
}

// Tried once there is room for a page: some file systems refuse when opening, some when writing.
void OwnFile::open_direct() {
  alignas(kPage) static const std::array<std::byte, kPage> page{};
  Descriptor direct(open(path_.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
  if (direct && pwrite(direct.get(), page.data(), page.size(), 0) == kPage) direct_ = std::move(direct);
}

void OwnFile::grow(std::int64_t bytes) {
  if (bytes <= bytes_) return;
  const int error = preallocate(fd(), bytes_, bytes);
  if (error != 0) refuse(bytes, error);
  if (bytes_ == 0) open_direct();
  bytes_ = bytes;
}

bool OwnFile::clear() noexcept {
  if (ftruncate(fd(), 0) != 0) return false;
  bytes_ = 0;
  return true;
}

void OwnFile::refuse(std::int64_t bytes, int error) const {
  const int cut = ftruncate(fd(), bytes_);
  struct statvfs space {};
  const bool known = cut == 0 && statvfs(directory_.c_str(), &space) == 0;
  const auto free = static_cast<std::int64_t>(space.f_bavail) * static_cast<std::int64_t>(space.f_frsize);
  fail(GEMINI_ERR_IO, "a file of {} does not fit into {}: it needs {} more, {} are free there ({})",
       text::format_bytes(bytes), directory_, text::format_bytes(bytes - bytes_),
       known ? text::format_bytes(free) : "an unknown number of bytes", words_of_errno(error));
}

}  // namespace gemini
