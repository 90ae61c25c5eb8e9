#include "placement/draft.hpp"

#include <algorithm>

namespace gemini {

Draft::Draft(const std::vector<ChunkFacts>& facts)
    : facts_(facts), wanted_(facts.size()), released_(facts.size()) {}

void Draft::open(const Need& need, const std::vector<ChunkStatus>& chunks, std::int64_t in_use_bytes) {
  chunks_ = &chunks;
  filled_ = in_use_bytes + need.gradient_bytes;
  ++decision_;
  releases_.clear();
  gathers_.clear();
  prefetches_.clear();
  if (need.chunks == nullptr) return;
  for (const int chunk : *need.chunks) {
    if (!present(chunk)) {
      gathers_.push_back(chunk);
      filled_ += slot(chunk);
    }
    wanted_[static_cast<std::size_t>(chunk)] = decision_;
  }
}

void Draft::release(int chunk) {
  releases_.push_back(chunk);
  released_[static_cast<std::size_t>(chunk)] = decision_;
  filled_ -= slot(chunk);
}

void Draft::prefetch(int chunk) {
  prefetches_.push_back(chunk);
  wanted_[static_cast<std::size_t>(chunk)] = decision_;
  filled_ += slot(chunk);
}

void Draft::write(std::vector<Action>& actions) const {
  for (const int chunk : releases_) actions.push_back({Action::Kind::release, chunk});
  for (const int chunk : gathers_) actions.push_back({Action::Kind::gather, chunk});
  for (const int chunk : prefetches_) actions.push_back({Action::Kind::prefetch, chunk});
}

bool Draft::present(int chunk) const {
  const auto c = static_cast<std::size_t>(chunk);
  if (wanted_[c] == decision_) return true;
  return (*chunks_)[c].copy != ChunkStatus::Copy::absent && !released(chunk);
}

bool Draft::released(int chunk) const {
  return released_[static_cast<std::size_t>(chunk)] == decision_;
}

bool Draft::prefetched(int chunk) const {
  return std::find(prefetches_.begin(), prefetches_.end(), chunk) != prefetches_.end();
}

bool Draft::evictable(int chunk) const {
  const auto c = static_cast<std::size_t>(chunk);
  const ChunkStatus& status = (*chunks_)[c];
  return status.copy != ChunkStatus::Copy::absent && status.leases == 0 && wanted_[c] != decision_ &&
         !released(chunk);
}

std::int64_t Draft::slot(int chunk) const {
  return facts_[static_cast<std::size_t>(chunk)].slot_bytes;
}

}  // namespace gemini
