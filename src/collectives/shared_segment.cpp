#include "collectives/shared_segment.hpp"

#include <algorithm>

#include "memory/page.hpp"

namespace gemini {
namespace {

// Large chunks begin where huge pages can.
constexpr std::int64_t kHugePage = std::int64_t{2} << 20;

std::int64_t aligned(std::int64_t at, std::int64_t unit) {
  return (at + unit - 1) / unit * unit;
}

}  // namespace

SharedSegment::SharedSegment(int ranks, const std::vector<SharedChunk>& chunks, int spare_buffers) {
  counters_ = kHeader + ranks * static_cast<std::int64_t>(sizeof(Mail));
  line_bytes_ = aligned(ranks * static_cast<std::int64_t>(sizeof(Counter)), kLine);
  std::int64_t at = whole_pages(counters_ + kKinds * static_cast<std::int64_t>(chunks.size()) * line_bytes_);
  std::int64_t largest = 0;
  for (const SharedChunk& chunk : chunks) {
    at = aligned(at, chunk.bytes >= kHugePage ? kHugePage : kPage);
    chunks_.push_back(at);
    at += chunk.bytes;
    arena_bytes_ += whole_pages(chunk.gradient_bytes);
    if (chunk.trained) largest = std::max(largest, whole_pages(chunk.gradient_bytes));
  }
  arenas_ = whole_pages(at);
  spare_bytes_ = spare_buffers * largest;
  arena_bytes_ += spare_bytes_;
  end_ = arenas_ + ranks * arena_bytes_;
}

}  // namespace gemini
