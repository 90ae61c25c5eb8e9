#include "collectives/shared_pages.hpp"

namespace gemini {

std::byte* GradientPages::take(std::int64_t bytes) {
  auto& free = free_[bytes];
  const bool again = !free.empty();
  if (!again && bytes > end_ - next_) return nullptr;
  const std::int64_t at = again ? free.back() : next_;
  if (!memory_.reserve(at, bytes)) return nullptr;
  again ? free.pop_back() : static_cast<void>(next_ += bytes);
  return memory_.data() + at;
}

void GradientPages::give(std::byte* data, std::int64_t bytes) noexcept {
  const std::int64_t at = data - memory_.data();
  memory_.release(at, bytes);
  free_[bytes].push_back(at);
}

}  // namespace gemini
