// A file descriptor that closes itself, and the words for what the system says against one.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

namespace gemini {

inline std::string words_of_errno(int error) {
  return std::generic_category().message(error);
}

// Larger files are refused, and whoever tries gets a signal that ends the process.
inline bool may_grow_to(std::int64_t bytes) noexcept {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || static_cast<rlim_t>(bytes) <= limit.rlim_cur;
}

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }

  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace gemini
