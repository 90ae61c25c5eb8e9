// What a trace says about compute memory at each of its events.
#pragma once

#include <cstdint>
#include <vector>

#include "placement/policy.hpp"

namespace gemini {

class Forecast {
 public:
  Forecast() = default;
  Forecast(const Trace& trace, const std::vector<ChunkFacts>& facts, const Budget& budget);

  [[nodiscard]] std::int64_t soft(int event) const { return at(event).soft; }
  // What copies that nobody needs may fill up to at this moment. Where the order is not known, the caller is
  // taken to hold as much as ever in the trace.
  [[nodiscard]] std::int64_t most(const Moment& moment, const Budget& budget) const {
    if (events_.empty()) return budget.hard();
    return moment.trace != nullptr ? soft(moment.position) : least_soft_;
  }
  // Open gradient buffers, and copies under lease, once the event has happened.
  [[nodiscard]] std::int64_t gradients(int event) const { return at(event).gradients; }
  [[nodiscard]] std::int64_t leased(int event) const { return at(event).leased; }
  // Gradient buffers that the event hands to reductions.
  [[nodiscard]] std::int64_t closed(int event) const { return at(event).closed; }
  // Chunks whose last lease the event ends.
  [[nodiscard]] const std::vector<int>& idle(int event) const { return at(event).idle; }

  // With filled_bytes in use at `now`, all of them until `use` but for copies that become idle with no use up
  // to then: by how much the soft limits in between would be exceeded at most.
  [[nodiscard]] std::int64_t excess(const Trace& trace, int now, int use, std::int64_t filled_bytes) const;

 private:
  struct At {
    std::int64_t soft = 0, gradients = 0, leased = 0, closed = 0;
    std::vector<int> idle;
  };
  // Checked: a policy may be asked about a trace that it has not learnt.
  [[nodiscard]] const At& at(int event) const { return events_.at(static_cast<std::size_t>(event)); }

  std::vector<At> events_;
  std::int64_t least_soft_ = 0;
  std::vector<std::int64_t> slots_;
};

}  // namespace gemini
