// Random iterations: nested operations, repeats, recompute, unequal and frozen chunks, other data in memory.
#pragma once

#include <random>
#include <vector>

#include "gemini.h"
#include "placement/policy.hpp"

namespace gemini::random_traces {

struct Iteration {
  std::vector<ChunkFacts> facts;
  Trace trace;
  std::int64_t all_bytes = 0;  // of slots and gradients together
};

class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool chance(int percent) { return below(100) < percent; }

  Iteration iteration() {
    Iteration made;
    const bool equal = chance(40), other_data = chance(50);
    for (int count = 3 + below(14); count > 0; --count) {
      ChunkFacts chunk;
      chunk.slot_bytes = equal ? 100 : 10 * (1 + below(20));
      chunk.wire_bytes = chunk.slot_bytes;
      chunk.gradient_bytes = chance(20) ? 0 : chunk.slot_bytes * (1 + below(2));
      made.all_bytes += chunk.slot_bytes + chunk.gradient_bytes;
      made.facts.push_back(chunk);
    }
    made.trace = Trace(events(made, other_data), static_cast<int>(made.facts.size()));
    return made;
  }

 private:
  std::vector<TraceEvent> events(const Iteration& made, bool other_data) {
    std::vector<TraceEvent> events;
    std::vector<std::vector<int>> begun;
    std::vector<int> leases(made.facts.size());
    std::vector<bool> open(made.facts.size());
    const int length = 10 + below(60);
    const int backward = below(length);
    for (int i = 0; i < length || !begun.empty(); ++i) {
      TraceEvent event;
      const bool begins = i < length && (begun.empty() || (begun.size() < 3 && chance(35)));
      const auto phase = i < backward ? GEMINI_FORWARD : chance(25) ? GEMINI_RECOMPUTE : GEMINI_BACKWARD;
      event.phase = static_cast<std::uint8_t>(phase);
      event.compute_ns = below(300);
      if (other_data) event.non_model_bytes = below(static_cast<int>(made.all_bytes) / 3);
      if (begins) {
        begun.push_back(some_chunks(static_cast<int>(made.facts.size())));
        event.chunks = begun.back();
      } else {
        event.kind = TraceEvent::Kind::end;
        for (const int chunk : begun.back())
          if (--leases[static_cast<std::size_t>(chunk)] == 0) event.chunks.push_back(chunk);
        begun.pop_back();
      }
      for (const int chunk : event.chunks) {
        const auto c = static_cast<std::size_t>(chunk);
        if (begins) ++leases[c];
        if (begins && phase == GEMINI_BACKWARD && made.facts[c].gradient_bytes > 0 && !open[c]) {
          open[c] = true;
          event.opens.push_back(chunk);
        }
      }
      if (!begins)
        for (std::size_t c = 0; c < open.size(); ++c)
          if (open[c] && chance(40)) {
            open[c] = false;
            event.closes.push_back(static_cast<int>(c));
          }
      events.push_back(event);
    }
    return events;  // what is still open the step closes
  }

  std::vector<int> some_chunks(int of) {
    std::vector<int> some;
    const int first = below(of);
    for (int count = below(4), i = 0; i < count && i < of; ++i)
      if (i == 0 || chance(60)) some.push_back((first + i) % of);
    return some;
  }

  std::mt19937 random_;
};

}  // namespace gemini::random_traces
