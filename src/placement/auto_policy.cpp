#include "placement/auto_policy.hpp"

#include <algorithm>

namespace gemini {
AutoPolicy::AutoPolicy(const std::vector<ChunkFacts>& facts, const PolicyRules& rules)
    : facts_(facts),
      rules_(rules),
      draft_(facts_),
      prefetcher_(rules.prefetch < 0 ? kAutoDepth : rules.prefetch) {}

void AutoPolicy::learn(const Trace& trace) {
  forecast_ = Forecast(trace, facts_, rules_.budget);
  prefetcher_.learn();
}

void AutoPolicy::before(const Need& need, const Moment& moment, const std::vector<ChunkStatus>& chunks,
                        std::int64_t in_use_bytes, std::vector<Action>& actions) {
  draft_.open(need, chunks, in_use_bytes);
  make_room(most(moment), moment, chunks);
  if (moment.trace != nullptr && rules_.prefetch != 0) prefetch(moment, chunks);
  filled_bytes_ = draft_.filled_bytes();
  draft_.write(actions);
}

void AutoPolicy::after(const std::vector<int>& ended, const Moment& moment,
                       const std::vector<ChunkStatus>& chunks, std::vector<Action>& actions) {
  const std::int64_t closed = moment.trace == nullptr ? 0 : forecast_.closed(moment.position);
  draft_.open({}, chunks, filled_bytes_ - closed);
  for (const int chunk : ended) {
    const bool transient = chunks[static_cast<std::size_t>(chunk)].transient;
    if (!draft_.evictable(chunk)) continue;
    if (transient || moment.trace == nullptr || !keeps(chunk, moment)) release(chunk, moment);
  }
  make_room(most(moment), moment, chunks);
  filled_bytes_ = draft_.filled_bytes();
  draft_.write(actions);
}

// In this iteration: no copy outlives a step.
int AutoPolicy::next_use(int chunk, const Moment& moment) const {
  return moment.trace == nullptr ? Trace::kNever : moment.trace->next_use(chunk, moment.position);
}

bool AutoPolicy::keeps(int chunk, const Moment& moment) const {
  return next_use(chunk, moment) != Trace::kNever;
}

void AutoPolicy::release(int chunk, const Moment& moment) {
  draft_.release(chunk);
  prefetcher_.released(moment.trace == nullptr ? 0 : moment.trace->next_use(chunk, moment.position));
}

void AutoPolicy::make_room(std::int64_t limit_bytes, const Moment& moment,
                           const std::vector<ChunkStatus>& chunks) {
  if (draft_.filled_bytes() <= limit_bytes) return;
  victims_.clear();
  for (int chunk = 0; chunk < static_cast<int>(chunks.size()); ++chunk) {
    if (!draft_.evictable(chunk)) continue;
    const bool arriving = chunks[static_cast<std::size_t>(chunk)].copy == ChunkStatus::Copy::arriving;
    victims_.push_back({!arriving, next_use(chunk, moment), chunk});
  }
  std::make_heap(victims_.begin(), victims_.end());
  while (draft_.filled_bytes() > limit_bytes && !victims_.empty()) {
    std::pop_heap(victims_.begin(), victims_.end());
    release(victims_.back().chunk, moment);
    victims_.pop_back();
  }
}

void AutoPolicy::prefetch(const Moment& moment, const std::vector<ChunkStatus>& chunks) {
  prefetcher_.fetch(draft_, *moment.trace, moment.position, chunks,
                    [&](int chunk, int use) { return make_room_ahead(chunk, use, moment, chunks); });
}

// Room for a copy from now until its use. All copies that are used before it count until then, so that it
// need not go again for one of them; gathered ones that are used after it may go, now or on the way.
bool AutoPolicy::make_room_ahead(int chunk, int use, const Moment& moment,
                                 const std::vector<ChunkStatus>& chunks) {
  const std::int64_t filled = draft_.filled_bytes() + slot(chunk);
  std::int64_t excess = forecast_.excess(*moment.trace, moment.position, use, filled);
  if (excess <= 0) return true;
  victims_.clear();
  for (int other = 0; other < static_cast<int>(chunks.size()); ++other) {
    if (!draft_.evictable(other)) continue;
    if (chunks[static_cast<std::size_t>(other)].copy == ChunkStatus::Copy::arriving) continue;
    const int next = next_use(other, moment);
    if (next <= use) continue;
    victims_.push_back({true, next, other});
    excess -= slot(other);
  }
  if (excess > 0) return false;
  std::make_heap(victims_.begin(), victims_.end());
  while (draft_.filled_bytes() + slot(chunk) > most(moment)) {
    std::pop_heap(victims_.begin(), victims_.end());
    release(victims_.back().chunk, moment);
    victims_.pop_back();
  }
  return true;
}

std::unique_ptr<Policy> make_auto_policy(const std::vector<ChunkFacts>& facts, const PolicyRules& rules) {
  return std::make_unique<AutoPolicy>(facts, rules);
}

}  // namespace gemini
