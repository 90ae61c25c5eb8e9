// Directories and limits for tests of files, put back at their end.
#pragma once

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "memory/async_io.hpp"

namespace gemini::test {

// ThreadSanitizer keeps a multiple of all memory that is touched or given to system calls.
#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

class Directory {
 public:
  Directory() {
    std::string name = std::filesystem::current_path() / "spill.XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no directory for the test");
    path_ = name;
  }
  ~Directory() {
    if (mounted_) umount(path_.c_str());
    std::filesystem::remove_all(path_);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  // A file system of its own; only root may.
  bool mount(const char* type, const char* options) {
    return mounted_ = ::mount("none", path_.c_str(), type, 0, options) == 0;
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_;
  bool mounted_ = false;
};

class Limit {
 public:
  Limit(decltype(RLIMIT_FSIZE) resource, rlim_t value) : resource_(resource) {
    getrlimit(resource_, &before_);
    rlimit now = before_;
    now.rlim_cur = value;
    setrlimit(resource_, &now);
  }
  ~Limit() { setrlimit(resource_, &before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  decltype(RLIMIT_FSIZE) resource_;
  rlimit before_{};
};

inline std::vector<unsigned char> random_bytes(std::int64_t count, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::vector<unsigned char> bytes(static_cast<std::size_t>(count));
  for (auto& byte : bytes) byte = static_cast<unsigned char>(engine());
  return bytes;
}

inline std::string engine_name(const testing::TestParamInfo<AsyncIo::Engine>& info) {
  return info.param == AsyncIo::Engine::best ? "Best" : "Thread";
}

}  // namespace gemini::test
