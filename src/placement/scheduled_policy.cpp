#include "placement/scheduled_policy.hpp"

#include <algorithm>

namespace gemini {

void ScheduledPolicy::learn(const Trace& trace) {
  AutoPolicy::learn(trace);
  schedule_ = {};
  following_ = false;
}

void ScheduledPolicy::before(const Need& need, const Moment& moment, const std::vector<ChunkStatus>& chunks,
                             std::int64_t in_use_bytes, std::vector<Action>& actions) {
  if (moment.trace != nullptr) {
    if (moment.position == 0) {
      following_ = !schedule_.releases.empty();
      due_ = next_ = 0;
    }
    following_ = following_ && expected(need, moment, chunks);
  }
  AutoPolicy::before(need, moment, chunks, in_use_bytes, actions);
}

// Is all that is absent to be gathered now?
bool ScheduledPolicy::expected(const Need& need, const Moment& moment,
                               const std::vector<ChunkStatus>& chunks) {
  if (need.chunks == nullptr) return true;
  const std::vector<Schedule::Gather>& gathers = schedule_.gathers;
  while (due_ < gathers.size() && gathers[due_].use < moment.position) ++due_;
  for (const int chunk : *need.chunks) {
    if (chunks[static_cast<std::size_t>(chunk)].copy != ChunkStatus::Copy::absent) continue;
    std::size_t i = due_;
    while (i < gathers.size() && gathers[i].use == moment.position && gathers[i].chunk != chunk) ++i;
    if (i == gathers.size() || gathers[i].use != moment.position) return false;
  }
  return true;
}

bool ScheduledPolicy::keeps(int chunk, const Moment& moment) const {
  if (!following_) return AutoPolicy::keeps(chunk, moment);
  const std::vector<int>& goes = schedule_.releases[static_cast<std::size_t>(moment.position)];
  return std::find(goes.begin(), goes.end(), chunk) == goes.end();
}

void ScheduledPolicy::prefetch(const Moment& moment, const std::vector<ChunkStatus>& chunks) {
  if (!following_) return AutoPolicy::prefetch(moment, chunks);
  if (moment.position == 0)
    for (const int chunk : schedule_.unwanted)
      if (draft().evictable(chunk)) release(chunk, moment);
  const std::vector<Schedule::Gather>& gathers = schedule_.gathers;
  for (; next_ < gathers.size() && gathers[next_].issue <= moment.position; ++next_) {
    const Schedule::Gather& gather = gathers[next_];
    if (gather.use <= moment.position || draft().present(gather.chunk)) continue;
    const bool fits = draft().filled_bytes() + slot(gather.chunk) <= forecast().soft(moment.position);
    if (!fits) return;  // the next operation tries again
    if (rules().prefetch < 0) {
      draft().prefetch(gather.chunk);
    } else {
      if (!prefetcher().may_start(draft(), chunks)) return;
      prefetcher().start(draft(), gather.chunk);
    }
  }
}

}  // namespace gemini
