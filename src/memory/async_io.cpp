#include "memory/async_io.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.hpp"

namespace gemini {
namespace {

std::unique_ptr<IoEngine> make_engine(AsyncIo::Engine engine) {
  auto ring = engine == AsyncIo::Engine::best ? make_io_uring() : nullptr;
  return ring ? std::move(ring) : make_io_thread();
}

// A ring also cancels what a thread left under way when it ended.
bool asks_again(std::int64_t result) {
  return result == -EINTR || result == -EAGAIN || result == -ECANCELED;
}

}  // namespace

AsyncIo::AsyncIo(Engine engine, std::int64_t piece_bytes)
    : engine_(make_engine(engine)), piece_bytes_(piece_bytes) {
  ensure(piece_bytes > 0 && piece_bytes <= UINT32_MAX, "a piece fits the engines' size");
  for (unsigned slot = 0; slot < IoEngine::kDepth; ++slot) free_slots_.push_back(slot);
}

AsyncIo::~AsyncIo() {
  try {
    for (start_waiting(); free_slots_.size() < IoEngine::kDepth; start_waiting()) take_result(true);
  } catch (...) {
    // The engine is broken: nothing more can be heard of what is under way.
  }
}

Transfer AsyncIo::read(int fd, std::int64_t offset, void* to, std::int64_t bytes) {
  return begin({0, fd, false, static_cast<std::byte*>(to), bytes, offset});
}

Transfer AsyncIo::write(int fd, std::int64_t offset, const void* from, std::int64_t bytes) {
  // The engines take one kind of pointer and only read through this one.
  auto* data = static_cast<std::byte*>(const_cast<void*>(from));
  return begin({0, fd, true, data, bytes, offset});
}

Transfer AsyncIo::begin(IoPiece whole) {
  if (whole.bytes == 0) return 0;
  whole.transfer = ++last_;
  Progress& progress = unfinished_[whole.transfer];
  for (std::int64_t at = 0; at < whole.bytes; at += piece_bytes_) {
    IoPiece piece = whole;
    piece.data += at;
    piece.offset += at;
    piece.bytes = std::min(piece_bytes_, whole.bytes - at);
    waiting_.push_back(piece);
    ++progress.pieces;
  }
  start_waiting();
  return whole.transfer;
}

bool AsyncIo::done(Transfer transfer) {
  while (take_result(false)) {
  }
  start_waiting();
  const auto found = unfinished_.find(transfer);
  return found == unfinished_.end() || found->second.pieces == 0;
}

int AsyncIo::wait(Transfer transfer) {
  for (;;) {
    start_waiting();
    const auto found = unfinished_.find(transfer);
    if (found == unfinished_.end()) return 0;
    if (found->second.pieces == 0) {
      const int error = found->second.error;
      unfinished_.erase(found);
      return error;
    }
    take_result(true);
  }
}

void AsyncIo::start_waiting() {
  while (!waiting_.empty() && !free_slots_.empty()) {
    const unsigned slot = free_slots_.back();
    under_way_[slot] = waiting_.front();
    engine_->start(under_way_[slot], slot);
    free_slots_.pop_back();
    waiting_.pop_front();
  }
}

bool AsyncIo::take_result(bool wait) {
  const auto result = engine_->next(wait);
  if (!result) return false;
  free_slots_.push_back(result->slot);
  account(under_way_[result->slot], result->bytes);
  return true;
}

void AsyncIo::account(IoPiece& piece, std::int64_t result) {
  if (asks_again(result)) return waiting_.push_front(piece);
  const std::int64_t moved = std::max<std::int64_t>(result, 0);
  (piece.write ? bytes_written_ : bytes_read_) += moved;
  piece.data += moved;
  piece.offset += moved;
  piece.bytes -= moved;
  if (moved > 0 && piece.bytes > 0) return waiting_.push_front(piece);

  const auto progress = unfinished_.find(piece.transfer);
  if (moved == 0 && progress->second.error == 0)
    progress->second.error = result == 0 ? ENODATA : static_cast<int>(-result);
  if (--progress->second.pieces == 0 && progress->second.error == 0) unfinished_.erase(progress);
}

}  // namespace gemini
