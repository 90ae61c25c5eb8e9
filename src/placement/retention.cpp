#include "placement/retention.hpp"

#include <set>
#include <utility>

namespace gemini {
namespace {

class Walk {
 public:
  Walk(const Trace& trace, const Forecast& forecast, const std::vector<ChunkFacts>& facts, const Start& start)
      : trace_(trace), forecast_(forecast), facts_(facts), copies_(facts.size()) {
    out_.releases.resize(trace.events().size());
    out_.kept_bytes.resize(trace.events().size());
    filled_ = start.resting_bytes;
    for (int chunk = 0; chunk < static_cast<int>(facts.size()); ++chunk) {
      if (!start.present[static_cast<std::size_t>(chunk)]) continue;
      copy(chunk).present = true;
      filled_ += slot(chunk);
      leave(chunk, -1);
    }
  }

  Retention run(std::int64_t reserved_bytes) {
    for (int e = 0; e < trace_.size(); ++e) {
      const TraceEvent& event = trace_.events()[static_cast<std::size_t>(e)];
      if (event.kind == TraceEvent::Kind::begin)
        for (const int chunk : event.chunks) use(chunk, e);
      for (const int chunk : forecast_.idle(e)) leave(chunk, e);
      while (!idle_.empty() && filled_ + forecast_.gradients(e) > forecast_.soft(e) - reserved_bytes)
        give_up(std::prev(idle_.end())->second);
    }
    while (!idle_.empty()) keep_until(idle_.begin()->second, trace_.size());
    accumulate();
    return std::move(out_);
  }

 private:
  struct Copy {
    bool present = false;
    int since = -1;  // when it became idle, or went
    std::pair<int, int> key{};
  };

  void use(int chunk, int event) {
    Copy& c = copy(chunk);
    if (c.present) {
      if (idle_.count(c.key) != 0) keep_until(chunk, event);
      return;
    }
    out_.misses.push_back({chunk, c.since, event});
    c.present = true;
    filled_ += slot(chunk);
  }

  void leave(int chunk, int event) {
    Copy& c = copy(chunk);
    c.since = event;
    const int next = trace_.next_use(chunk, event);
    c.key = {next, chunk};
    idle_.insert(c.key);
    if (next == Trace::kNever) give_up(chunk);
  }

  void keep_until(int chunk, int event) {
    Copy& c = copy(chunk);
    idle_.erase(c.key);
    out_.kept_bytes[static_cast<std::size_t>(std::max(c.since, 0))] += slot(chunk);
    if (event < trace_.size()) out_.kept_bytes[static_cast<std::size_t>(event)] -= slot(chunk);
  }

  void give_up(int chunk) {
    Copy& c = copy(chunk);
    idle_.erase(c.key);
    c.present = false;
    filled_ -= slot(chunk);
    std::vector<int>& list = c.since < 0 ? out_.unwanted : out_.releases[static_cast<std::size_t>(c.since)];
    list.push_back(chunk);
  }

  // Differences from event to event become amounts.
  void accumulate() {
    std::int64_t kept = 0;
    for (std::int64_t& bytes : out_.kept_bytes) bytes = kept += bytes;
  }

  Copy& copy(int chunk) { return copies_[static_cast<std::size_t>(chunk)]; }
  [[nodiscard]] std::int64_t slot(int chunk) const {
    return facts_[static_cast<std::size_t>(chunk)].slot_bytes;
  }

  const Trace& trace_;
  const Forecast& forecast_;
  const std::vector<ChunkFacts>& facts_;
  std::vector<Copy> copies_;
  std::set<std::pair<int, int>> idle_;  // by next use
  std::int64_t filled_ = 0;             // gradients aside
  Retention out_;
};

}  // namespace

Retention retain(const Trace& trace, const Forecast& forecast, const std::vector<ChunkFacts>& facts,
                 const Start& start, std::int64_t reserved_bytes) {
  return Walk(trace, forecast, facts, start).run(reserved_bytes);
}

}  // namespace gemini
