// Reads and writes of files that go on while the caller does something else.
//
// A transfer is cut into pieces, of which up to IoEngine::kDepth are under way at once and the others wait
// for their turn; what a system call leaves undone is asked for again. Transfers end in any order, and those
// that touch the same bytes are ordered by waiting alone. One thread at a time calls.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "memory/io_engine.hpp"

namespace gemini {

using Transfer = std::uint64_t;  // 0: nothing to do, done

class AsyncIo {
 public:
  enum class Engine { best, thread };
  static constexpr std::int64_t kPiece = std::int64_t{16} << 20;

  explicit AsyncIo(Engine engine, std::int64_t piece_bytes = kPiece);
  ~AsyncIo();  // finishes what was begun
  AsyncIo(const AsyncIo&) = delete;
  AsyncIo& operator=(const AsyncIo&) = delete;

  // The memory stays and is not touched (write: not changed) until the transfer is done.
  Transfer read(int fd, std::int64_t offset, void* to, std::int64_t bytes);
  Transfer write(int fd, std::int64_t offset, const void* from, std::int64_t bytes);
  [[nodiscard]] bool done(Transfer transfer);
  // 0, or the errno of the first piece that failed (ENODATA: the file ends early); told once.
  [[nodiscard]] int wait(Transfer transfer);

  [[nodiscard]] const char* engine() const noexcept { return engine_->name(); }
  [[nodiscard]] std::int64_t bytes_read() const noexcept { return bytes_read_; }
  [[nodiscard]] std::int64_t bytes_written() const noexcept { return bytes_written_; }

 private:
  struct Progress {
    std::int64_t pieces = 0;  // not yet done
    int error = 0;
  };
  Transfer begin(IoPiece whole);
  void start_waiting();
  bool take_result(bool wait);
  void account(IoPiece& piece, std::int64_t result);

  std::unique_ptr<IoEngine> engine_;
  std::int64_t piece_bytes_;
  Transfer last_ = 0;
  std::unordered_map<Transfer, Progress> unfinished_;  // and failures that nobody heard of yet
  std::deque<IoPiece> waiting_;
  std::array<IoPiece, IoEngine::kDepth> under_way_{};
  std::vector<unsigned> free_slots_;
  std::int64_t bytes_read_ = 0;
  std::int64_t bytes_written_ = 0;
};

}  // namespace gemini
