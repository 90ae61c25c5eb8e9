// The unit in which tiers count: of memory that the system maps and of files that bypass its cache.
#pragma once

#include <cstdint>

namespace gemini {

inline constexpr std::int64_t kPage = 4096;

[[nodiscard]] constexpr std::int64_t whole_pages(std::int64_t bytes) noexcept {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace gemini
