// Memory that processes of one machine see alike: a POSIX shared memory object, mapped whole.
//
// The object is as large as it may become; memory is behind a part of it from reserve() to release(). What
// is touched without has no such promise: where shared memory is short the process would be killed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "memory/descriptor.hpp"

namespace gemini {

class SharedMemory {
 public:
  SharedMemory() = default;
  // A new object of that name; GEMINI_ERR_IO in words, GEMINI_ERR_DUPLICATE if there is one.
  static SharedMemory create(const std::string& name, std::int64_t bytes);
  // One that another process made; GEMINI_ERR_IO.
  static SharedMemory open(const std::string& name, std::int64_t bytes);
  // The object stays until the last process that mapped it ends, and nobody finds it any more.
  static void remove(const std::string& name) noexcept;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }

  // Zero-filled where it was not reserved before; pages lie near the caller's processor. false: refused, and
  // nothing was taken but what others reserved.
  [[nodiscard]] bool reserve(std::int64_t offset, std::int64_t bytes) const noexcept;
  // Of the range, the pages that are wholly in it.
  void release(std::int64_t offset, std::int64_t bytes) const noexcept;
  // Maps what is reserved into this process, so that nobody waits for it later.
  void populate(std::int64_t offset, std::int64_t bytes) const noexcept;

 private:
  SharedMemory(Descriptor file, const std::string& name, std::int64_t bytes);

  Descriptor file_;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

// What is left of it on this machine; -1: not known.
std::int64_t free_shared_memory() noexcept;

}  // namespace gemini
