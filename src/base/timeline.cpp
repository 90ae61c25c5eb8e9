#include "base/timeline.hpp"

namespace gemini {

void Timeline::add(const TimelineEvent& event) noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = static_cast<std::size_t>(added_++) % most_;
  if (at == ring_.size())
    ring_.push_back(event);  // reserved: does not throw
  else
    ring_[at] = event;
}

std::int32_t Timeline::label(const std::string& words) {
  const auto next = static_cast<std::int32_t>(labels_.size());
  if (labels_.size() == kMost) return next - 1;  // a program that never says the same
  const auto [found, is_new] = numbers_.emplace(words, next);
  if (is_new) labels_.push_back(words);
  return found->second;
}

void Timeline::memory(const char* kind, std::int64_t bytes) {
  const auto [last, is_new] = memory_.emplace(kind, bytes);
  if (!is_new && last->second == bytes) return;
  last->second = bytes;
  TimelineEvent event{TimelineEvent::Track::memory};
  event.what = kind;
  event.bytes = bytes;
  event.begin_ns = now_ns();
  add(event);
}

Timeline::Recorded Timeline::recorded() const {
  const std::lock_guard lock(mutex_);
  Recorded all;
  all.events.reserve(ring_.size());
  const std::size_t oldest = ring_.size() < most_ ? 0 : static_cast<std::size_t>(added_) % most_;
  for (std::size_t i = 0; i < ring_.size(); ++i) all.events.push_back(ring_[(oldest + i) % ring_.size()]);
  all.dropped = added_ - static_cast<std::int64_t>(ring_.size());
  return all;
}

}  // namespace gemini
