#include "placement/trace.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace gemini {

Trace::Trace(std::vector<TraceEvent> events, int chunks)
    : events_(std::move(events)), uses_(static_cast<std::size_t>(chunks)) {
  for (int e = 0; e < size(); ++e) {
    const TraceEvent& event = events_[static_cast<std::size_t>(e)];
    if (event.kind != TraceEvent::Kind::begin) continue;
    for (const int chunk : event.chunks) uses_[static_cast<std::size_t>(chunk)].push_back(e);
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
  const std::vector<int>& uses = uses_[static_cast<std::size_t>(chunk)];
  const auto next = std::upper_bound(uses.begin(), uses.end(), position);
  return next == uses.end() ? kNever : *next;
}

}  // namespace gemini
