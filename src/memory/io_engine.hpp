// Who carries out single reads and writes of files while the caller goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

namespace gemini {

// One system call's worth.
struct IoPiece {
  std::uint64_t transfer;
  int fd;
  bool write;
  std::byte* data;
  std::int64_t bytes;
  std::int64_t offset;
};

struct IoResult {
  unsigned slot;
  std::int64_t bytes;  // as many as were moved, or -errno
};

class IoEngine {
 public:
  static constexpr unsigned kDepth = 32;  // pieces under way at once, each in a slot below this

  virtual ~IoEngine() = default;
  virtual void start(const IoPiece& piece, unsigned slot) = 0;
  // A piece that has ended, whichever is first; wait: there is one under way, so one will.
  virtual std::optional<IoResult> next(bool wait) = 0;
  [[nodiscard]] virtual const char* name() const noexcept = 0;
};

// NULL where the kernel, the container or the build has none.
std::unique_ptr<IoEngine> make_io_uring();
// pread and pwrite on a worker thread, for everyone
std::unique_ptr<IoEngine> make_io_thread();

}  // namespace gemini
