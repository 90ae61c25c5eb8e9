#include "byte_bound.hpp"

#include <algorithm>
#include <numeric>

namespace gemini_bench {
namespace {

using gemini::TraceEvent;

struct Idle {
  std::size_t from, until;  // events
  std::int64_t bytes;
};

// The largest choice of intervals, sorted by their right ends, with so much room at each event.
class Choice {
 public:
  Choice(std::vector<Idle> idles, std::vector<std::int64_t> room)
      : idles_(std::move(idles)), room_(std::move(room)) {}

  std::int64_t most_in_parts() { return in_parts(0); }
  // -1: it takes too long.
  std::int64_t most() {
    search(0, 0);
    return tries_ < kMostTries ? best_ : -1;
  }

 private:
  static constexpr int kMostTries = 100000;

  [[nodiscard]] std::int64_t fits(const std::vector<std::int64_t>& room, const Idle& idle) const {
    const auto at = [&](std::size_t event) { return room.begin() + static_cast<std::ptrdiff_t>(event); };
    return std::min(idle.bytes, *std::min_element(at(idle.from), at(idle.until)));
  }
  static void take(std::vector<std::int64_t>& room, const Idle& idle, std::int64_t bytes) {
    for (std::size_t e = idle.from; e < idle.until; ++e) room[e] -= bytes;
  }
  [[nodiscard]] std::int64_t in_parts(std::size_t first) const {
    std::vector<std::int64_t> room = room_;
    std::int64_t kept = 0;
    for (std::size_t i = first; i < idles_.size(); ++i) {
      const std::int64_t part = fits(room, idles_[i]);
      take(room, idles_[i], part);
      kept += part;
    }
    return kept;
  }
  void search(std::size_t i, std::int64_t kept) {
    best_ = std::max(best_, kept);
    if (i == idles_.size() || ++tries_ >= kMostTries || kept + in_parts(i) <= best_) return;
    const Idle& idle = idles_[i];
    if (fits(room_, idle) == idle.bytes) {
      take(room_, idle, idle.bytes);
      search(i + 1, kept + idle.bytes);
      take(room_, idle, -idle.bytes);
    }
    search(i + 1, kept);
  }

  std::vector<Idle> idles_;
  std::vector<std::int64_t> room_;
  std::int64_t best_ = 0;
  int tries_ = 0;
};

}  // namespace

Fewest fewest_bytes(const gemini::Trace& trace, const std::vector<gemini::ChunkFacts>& facts,
                    const gemini::Budget& budget, std::int64_t resting_bytes) {
  std::int64_t unit = 0;  // of all sizes: less than one of it is no room
  for (const gemini::ChunkFacts& chunk : facts) unit = std::gcd(unit, chunk.slot_bytes);
  std::vector<bool> leased(facts.size()), used(facts.size());
  std::vector<std::size_t> idle_since(facts.size());
  std::vector<std::int64_t> room;  // for idle copies, once each event has happened
  std::vector<Idle> idles;
  std::int64_t in_use = resting_bytes, bytes = 0;
  for (std::size_t e = 0; e < trace.events().size(); ++e) {
    const TraceEvent& event = trace.events()[e];
    const bool begins = event.kind == TraceEvent::Kind::begin;
    for (const int chunk : event.chunks) {
      const auto c = static_cast<std::size_t>(chunk);
      if (begins == leased[c]) continue;  // a lease within a lease
      leased[c] = begins;
      in_use += (begins ? 1 : -1) * facts[c].slot_bytes;
      if (!begins) idle_since[c] = e;
      if (!begins) continue;
      bytes += facts[c].slot_bytes;
      if (used[c]) idles.push_back({idle_since[c], e, facts[c].slot_bytes});
      used[c] = true;
    }
    for (const int chunk : event.opens) in_use += facts[static_cast<std::size_t>(chunk)].gradient_bytes;
    for (const int chunk : event.closes) in_use -= facts[static_cast<std::size_t>(chunk)].gradient_bytes;
    room.push_back(std::max<std::int64_t>(0, budget.soft(event.non_model_bytes) - in_use) / unit * unit);
  }
  Choice choice(std::move(idles), std::move(room));
  const std::int64_t most = choice.most();
  return most >= 0 ? Fewest{bytes - most, true} : Fewest{bytes - choice.most_in_parts(), false};
}

}  // namespace gemini_bench
