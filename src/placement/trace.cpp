#include "placement/trace.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace gemini {

Trace::Trace(std::vector<TraceEvent> events, int chunks)
    : events_(std::move(events)), uses_(static_cast<std::size_t>(chunks)) {
  std::size_t all = 0;
  for (int e = 0; e < size(); ++e) {
    const TraceEvent& event = events_[static_cast<std::size_t>(e)];
    first_.push_back(all);
    all += event.chunks.size();
    if (event.kind != TraceEvent::Kind::begin) continue;
    for (const int chunk : event.chunks) uses_[static_cast<std::size_t>(chunk)].push_back(e);
  }
  next_.resize(all);
  std::vector<int> next(static_cast<std::size_t>(chunks), kNever);
  for (int e = size() - 1; e >= 0; --e) {
    const TraceEvent& event = events_[static_cast<std::size_t>(e)];
    for (std::size_t i = 0; i < event.chunks.size(); ++i) {
      int& use = next[static_cast<std::size_t>(event.chunks[i])];
      next_[first_[static_cast<std::size_t>(e)] + i] = use;
      if (event.kind == TraceEvent::Kind::begin) use = e;
    }
  }
}

bool Trace::well_formed(const std::vector<TraceEvent>& events, int chunks) {
  std::vector<bool> leased(static_cast<std::size_t>(chunks));
  std::vector<bool> open(leased.size());
  for (std::size_t e = 0; e < events.size(); ++e) {
    const TraceEvent& event = events[e];
    const bool begins = event.kind == TraceEvent::Kind::begin;
    if (event.compute_ns < 0 || event.non_model_bytes < 0) return false;
    if (!begins && (e == 0 || !event.opens.empty())) return false;
    for (const std::vector<int>* list : {&event.chunks, &event.opens, &event.closes}) {
      std::set<int> seen;
      for (const int chunk : *list)
        if (chunk < 0 || chunk >= chunks || !seen.insert(chunk).second) return false;
    }
    for (const int chunk : event.closes) {
      if (!open[static_cast<std::size_t>(chunk)]) return false;
      open[static_cast<std::size_t>(chunk)] = false;
    }
    for (const int chunk : event.opens) {
      if (open[static_cast<std::size_t>(chunk)]) return false;
      open[static_cast<std::size_t>(chunk)] = true;
    }
    for (const int chunk : event.chunks) {
      if (!begins && !leased[static_cast<std::size_t>(chunk)]) return false;
      leased[static_cast<std::size_t>(chunk)] = begins;
    }
  }
  return std::none_of(leased.begin(), leased.end(), [](bool lease) { return lease; });
}

int Trace::next_use(int chunk, int position) const {
  constexpr std::size_t kFew = 8;
  if (position >= 0 && position < size()) {
    const std::vector<int>& own = events_[static_cast<std::size_t>(position)].chunks;
    for (std::size_t i = 0; i < own.size() && i < kFew; ++i)
      if (own[i] == chunk) return next_[first_[static_cast<std::size_t>(position)] + i];
  }
  const std::vector<int>& uses = uses_[static_cast<std::size_t>(chunk)];
  const auto next = std::upper_bound(uses.begin(), uses.end(), position);
  return next == uses.end() ? kNever : *next;
}

}  // namespace gemini
