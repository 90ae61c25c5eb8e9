#include "memory/io_engine.hpp"

#ifdef GEMINI_HAVE_IO_URING

#include <liburing.h>

#include <cerrno>
#include <system_error>

#include "base/error.hpp"

namespace gemini {
namespace {

// Kernels before 5.6 have rings that do not know plain reads and writes.
bool reads_and_writes(io_uring& ring) {
  io_uring_probe* probe = io_uring_get_probe_ring(&ring);
  if (probe == nullptr) return false;
  const bool known = io_uring_opcode_supported(probe, IORING_OP_READ) != 0 &&
                     io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0;
  io_uring_free_probe(probe);
  return known;
}

// What the kernel asks to be tried again.
bool passing(int error) {
  return error == EINTR || error == EAGAIN || error == EBUSY;
}

[[noreturn]] void broken(const char* call, int error) {
  fail(GEMINI_ERR_IO_FATAL, "{}: {}", call, std::generic_category().message(error));
}

class UringEngine : public IoEngine {
 public:
  explicit UringEngine(const io_uring& ring) : ring_(ring) {}
  ~UringEngine() override { io_uring_queue_exit(&ring_); }
  UringEngine(const UringEngine&) = delete;
  UringEngine& operator=(const UringEngine&) = delete;

  void start(const IoPiece& piece, unsigned slot) override {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    ensure(sqe != nullptr, "a ring has room for as many pieces as it is deep");
    const auto bytes = static_cast<unsigned>(piece.bytes);
    const auto offset = static_cast<std::uint64_t>(piece.offset);
    if (piece.write) {
      io_uring_prep_write(sqe, piece.fd, piece.data, bytes, offset);
    } else {
      io_uring_prep_read(sqe, piece.fd, piece.data, bytes, offset);
    }
    io_uring_sqe_set_data64(sqe, slot);
    int submitted;
    do {
      submitted = io_uring_submit(&ring_);
    } while (submitted < 0 && passing(-submitted));
    if (submitted < 0) broken("io_uring_submit", -submitted);
  }

  std::optional<IoResult> next(bool wait) override {
    io_uring_cqe* cqe = nullptr;
    int error;
    do {
      error = wait ? io_uring_wait_cqe(&ring_, &cqe) : io_uring_peek_cqe(&ring_, &cqe);
    } while (wait && error < 0 && passing(-error));
    if (error == -EAGAIN) return std::nullopt;
    if (error < 0) broken("io_uring_wait_cqe", -error);
    const IoResult result{static_cast<unsigned>(io_uring_cqe_get_data64(cqe)), cqe->res};
    io_uring_cqe_seen(&ring_, cqe);
    return result;
  }

  [[nodiscard]] const char* name() const noexcept override { return "io_uring"; }

 private:
  io_uring ring_;
};

}  // namespace

std::unique_ptr<IoEngine> make_io_uring() {
  io_uring ring;
  if (io_uring_queue_init(IoEngine::kDepth, &ring, 0) < 0) return nullptr;
  if (reads_and_writes(ring)) return std::make_unique<UringEngine>(ring);
  io_uring_queue_exit(&ring);
  return nullptr;
}

}  // namespace gemini

#else

namespace gemini {

std::unique_ptr<IoEngine> make_io_uring() {
  return nullptr;
}

}  // namespace gemini

#endif
