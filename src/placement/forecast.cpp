#include "placement/forecast.hpp"

#include <algorithm>

namespace gemini {

Forecast::Forecast(const Trace& trace, const std::vector<ChunkFacts>& facts, const Budget& budget) {
  for (const ChunkFacts& chunk : facts) slots_.push_back(chunk.slot_bytes);
  std::vector<bool> leased(facts.size());
  At now;
  least_soft_ = budget.hard();
  for (const TraceEvent& event : trace.events()) {
    now.soft = budget.soft(event.non_model_bytes);
    least_soft_ = std::min(least_soft_, now.soft);
    now.idle.clear();
    now.closed = 0;
    for (const int chunk : event.closes) now.closed += facts[static_cast<std::size_t>(chunk)].gradient_bytes;
    now.gradients -= now.closed;
    for (const int chunk : event.opens)
      now.gradients += facts[static_cast<std::size_t>(chunk)].gradient_bytes;
    for (const int chunk : event.chunks) {
      const auto c = static_cast<std::size_t>(chunk);
      if (event.kind == TraceEvent::Kind::begin) {
        if (!leased[c]) now.leased += slots_[c];
        leased[c] = true;
      } else if (leased[c]) {  // else an INFERENCE lease outlived it
        now.leased -= slots_[c];
        now.idle.push_back(chunk);
        leased[c] = false;
      }
    }
    events_.push_back(now);
  }
}

std::int64_t Forecast::excess(const Trace& trace, int now, int use, std::int64_t filled_bytes) const {
  std::int64_t filled = filled_bytes - gradients(now);
  std::int64_t most = filled + gradients(now) - soft(now);
  for (int e = now + 1; e < use; ++e) {
    for (const int chunk : idle(e))
      if (trace.next_use(chunk, e) > use) filled -= slots_[static_cast<std::size_t>(chunk)];
    most = std::max(most, filled + gradients(e) - soft(e));
  }
  return most;
}

}  // namespace gemini
