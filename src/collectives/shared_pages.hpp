// Parts of a shared segment as memory of a tier.
#pragma once

#include <map>
#include <vector>

#include "collectives/shared_segment.hpp"
#include "memory/page_source.hpp"

namespace gemini {

inline constexpr const char* kSharedMemory = "shared memory (/dev/shm)";

// This rank's part of a chunk's place. Its memory goes back to the machine while it is not used.
class PartPages final : public PageSource {
 public:
  // shows: where in the segment what take() returns lies. left: how often each of the ranks was done with
  // what lay there.
  PartPages(const SharedMemory& memory, std::int64_t at, std::int64_t bytes, std::int64_t shows,
            const SharedSegment::Counter* left, int ranks)
      : memory_(memory), at_(at), bytes_(bytes), shows_(shows), left_(left), ranks_(ranks) {}

  std::byte* take(std::int64_t) override {
    return memory_.reserve(at_, bytes_) ? memory_.data() + shows_ : nullptr;
  }
  void give(std::byte*, std::int64_t) noexcept override { memory_.release(at_, bytes_); }
  [[nodiscard]] const char* name() const noexcept override { return kSharedMemory; }

  // Something lies there from now on; the number of times so far.
  std::uint32_t occupy() { return ++occupied_; }
  [[nodiscard]] std::uint32_t occupied() const noexcept { return occupied_; }
  [[nodiscard]] bool is_read_by_others() const noexcept override { return true; }
  [[nodiscard]] bool is_left() const noexcept override { return all_reached(left_, ranks_, occupied_); }

 private:
  const SharedMemory& memory_;
  std::int64_t at_, bytes_, shows_;
  const SharedSegment::Counter* left_;
  int ranks_;
  std::uint32_t occupied_ = 0;
};

// Buffers of this rank's gradients: few sizes, each used again and again.
class GradientPages final : public PageSource {
 public:
  GradientPages(const SharedMemory& memory, std::int64_t at, std::int64_t bytes)
      : memory_(memory), next_(at), end_(at + bytes) {}

  std::byte* take(std::int64_t bytes) override;
  void give(std::byte* data, std::int64_t bytes) noexcept override;
  [[nodiscard]] const char* name() const noexcept override { return kSharedMemory; }

 private:
  const SharedMemory& memory_;
  std::int64_t next_, end_;                                 // what was never taken
  std::map<std::int64_t, std::vector<std::int64_t>> free_;  // by size: where
};

}  // namespace gemini
