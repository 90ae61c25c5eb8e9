#include "placement/prefetcher.hpp"

namespace gemini {

// Those that this decision starts are not arriving yet, and count.
bool Prefetcher::may_start(const Draft& draft, const std::vector<ChunkStatus>& chunks) {
  const auto arrived = [&](int chunk) {
    const bool arriving = chunks[static_cast<std::size_t>(chunk)].copy == ChunkStatus::Copy::arriving;
    return !draft.prefetched(chunk) && !(arriving && draft.evictable(chunk));
  };
  on_their_way_.erase(std::remove_if(on_their_way_.begin(), on_their_way_.end(), arrived),
                      on_their_way_.end());
  return static_cast<int>(on_their_way_.size()) < depth_;
}

void Prefetcher::start(Draft& draft, int chunk) {
  draft.prefetch(chunk);
  on_their_way_.push_back(chunk);
}

}  // namespace gemini
