#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "memory/host_stream.hpp"
#include "memory/io_engine.hpp"

namespace gemini {
namespace {

std::int64_t carry_out(const IoPiece& piece) {
  const auto bytes = static_cast<std::size_t>(piece.bytes);
  const ssize_t moved = piece.write ? pwrite(piece.fd, piece.data, bytes, piece.offset)
                                    : pread(piece.fd, piece.data, bytes, piece.offset);
  return moved < 0 ? -errno : moved;
}

class ThreadEngine : public IoEngine {
 public:
  void start(const IoPiece& piece, unsigned slot) override {
    worker_.enqueue([this, piece, slot] {
      const IoResult result{slot, carry_out(piece)};
      {
        const std::lock_guard lock(mutex_);
        results_.push_back(result);
      }
      ended_.notify_one();
    });
  }

  std::optional<IoResult> next(bool wait) override {
    std::unique_lock lock(mutex_);
    if (wait) ended_.wait(lock, [this] { return !results_.empty(); });
    if (results_.empty()) return std::nullopt;
    const IoResult result = results_.front();
    results_.pop_front();
    return result;
  }

  [[nodiscard]] const char* name() const noexcept override { return "thread"; }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::deque<IoResult> results_;
  HostStream worker_;  // last: its tasks end before the rest
};

}  // namespace

std::unique_ptr<IoEngine> make_io_thread() {
  return std::make_unique<ThreadEngine>();
}

}  // namespace gemini
