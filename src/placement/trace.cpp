#include "placement/trace.hpp"

#include <algorithm>
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

int Trace::next_use(int chunk, int position) const {
  const std::vector<int>& uses = uses_[static_cast<std::size_t>(chunk)];
  const auto next = std::upper_bound(uses.begin(), uses.end(), position);
  return next == uses.end() ? kNever : *next;
}

}  // namespace gemini
