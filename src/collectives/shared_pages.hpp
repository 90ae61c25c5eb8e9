// Parts of a shared segment as memory of a tier.
#pragma once

#include <map>
#include <vector>

#include "collectives/shared_segment.hpp"
#include "memory/page_source.hpp"

namespace gemini {

inline constexpr const char* kSharedMemory = "shared memory (/dev/shm)";

// This rank's part of a chunk: it has one place. Its memory goes back to the machine while it is not used.
class PartPages final : public PageSource {
 public:
  // shows: where in the segment what take() returns lies.
  PartPages(const SharedMemory& memory, std::int64_t at, std::int64_t bytes, std::int64_t shows)
      : memory_(memory), at_(at), bytes_(bytes), shows_(shows) {}

  std::byte* take(std::int64_t) override {
    return memory_.reserve(at_, bytes_) ? memory_.data() + shows_ : nullptr;
  }
  void give(std::byte*, std::int64_t) noexcept override { memory_.release(at_, bytes_); }
  [[nodiscard]] bool is_read_by_others() const noexcept override { return true; }
  [[nodiscard]] const char* name() const noexcept override { return kSharedMemory; }

 private:
  const SharedMemory& memory_;
  std::int64_t at_, bytes_, shows_;
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
