// Where the memory of a tier comes from: the machine, or a part of a segment that ranks share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gemini {

class PageSource {
 public:
  PageSource() = default;
  PageSource(const PageSource&) = delete;
  PageSource& operator=(const PageSource&) = delete;
  virtual ~PageSource() = default;

  // Zero-filled whole pages; NULL: refused.
  virtual std::byte* take(std::int64_t bytes) = 0;
  virtual void give(std::byte* data, std::int64_t bytes) noexcept = 0;
  // Peers may read it even when this rank keeps it for reuse.
  [[nodiscard]] virtual bool is_read_by_others() const noexcept { return false; }
  // None does now.
  [[nodiscard]] virtual bool is_left() const noexcept { return true; }
  // For the words of a refusal.
  [[nodiscard]] virtual const char* name() const noexcept = 0;
};

// Of this process alone.
PageSource& private_pages() noexcept;

}  // namespace gemini
