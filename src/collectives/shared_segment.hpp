// The memory that the ranks of a group on one node share.
//
// Each chunk has a place. Behind them each rank has an arena for the buffers of its gradients, which the
// others read. Before them lie counters, each with one writer: a peer that sees one grow sees what was
// written before.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "memory/shared_memory.hpp"

namespace gemini {

// What a chunk takes of the segment.
struct SharedChunk {
  std::int64_t bytes;           // of all shards
  std::int64_t gradient_bytes;  // of a rank's buffer
  bool trained;                 // false: there may be gradients later
  bool in_memory;               // it is there from the start
};

class SharedSegment {
 public:
  using Counter = std::atomic<std::uint32_t>;
  static_assert(Counter::is_always_lock_free);

  // What rank says of its gradients: buffers are handed over in one order on all ranks.
  struct alignas(64) Mail {
    static constexpr std::uint32_t kSlots = 8;  // more than are ever under way
    Counter handed;                             // buffers handed over so far
    std::atomic<std::int64_t> at[kSlots];  // of buffer n in [n % kSlots]: where in the segment; -1: zeros
    alignas(64) Counter added;             // of all ranks, this rank's slice is added up to here
  };

  SharedSegment() = default;
  // spare_buffers: of the largest size, beside one of each chunk.
  SharedSegment(int ranks, const std::vector<SharedChunk>& chunks, int spare_buffers);

  [[nodiscard]] std::int64_t bytes() const { return end_; }
  void create(const std::string& name) { memory_ = SharedMemory::create(name, end_); }
  void open(const std::string& name) { memory_ = SharedMemory::open(name, end_); }
  [[nodiscard]] const SharedMemory& memory() const { return memory_; }
  explicit operator bool() const { return static_cast<bool>(memory_); }

  // Known to whoever created it and to those who were told, so that nobody takes another for it.
  [[nodiscard]] std::atomic<std::uint64_t>& nonce() const {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory_.data());
  }
  // Times that a rank's shard of the chunk was written, that the rank was done with reading the chunk, and
  // that it had memory behind its part of the chunk's place.
  [[nodiscard]] Counter& version(int chunk, int rank) const { return counter(kKinds * chunk, rank); }
  [[nodiscard]] Counter& left(int chunk, int rank) const { return counter(kKinds * chunk + 1, rank); }
  [[nodiscard]] Counter& opened(int chunk, int rank) const { return counter(kKinds * chunk + 2, rank); }
  [[nodiscard]] Mail& mail(int rank) const { return reinterpret_cast<Mail*>(memory_.data() + kHeader)[rank]; }

  [[nodiscard]] std::int64_t control_bytes() const { return chunks_.empty() ? end_ : chunks_.front(); }
  [[nodiscard]] std::int64_t chunk_at(int chunk) const { return chunks_[static_cast<std::size_t>(chunk)]; }
  [[nodiscard]] std::int64_t arena_at(int rank) const { return arenas_ + rank * arena_bytes_; }
  [[nodiscard]] std::int64_t arena_bytes() const { return arena_bytes_; }
  [[nodiscard]] std::int64_t spare_bytes() const { return spare_bytes_; }  // of it, for the spare buffers

 private:
  static constexpr std::int64_t kHeader = 64;
  static constexpr std::int64_t kLine = 64;
  static constexpr int kKinds = 3;  // of counters, for each chunk

  [[nodiscard]] Counter& counter(int line, int rank) const {
    return reinterpret_cast<Counter*>(memory_.data() + counters_ + line * line_bytes_)[rank];
  }

  std::int64_t counters_ = 0, line_bytes_ = 0;  // of one kind of one chunk: a counter of each rank
  std::vector<std::int64_t> chunks_;            // where each begins
  std::int64_t arenas_ = 0, arena_bytes_ = 0, spare_bytes_ = 0, end_ = 0;
  SharedMemory memory_;
};

// Have the counters of so many ranks, side by side, reached the value? What was written before is seen then.
inline bool all_reached(const SharedSegment::Counter* first, int ranks, std::uint32_t value) noexcept {
  for (int rank = 0; rank < ranks; ++rank)
    if (static_cast<std::int32_t>(first[rank].load(std::memory_order_acquire) - value) < 0) return false;
  return true;
}

}  // namespace gemini
