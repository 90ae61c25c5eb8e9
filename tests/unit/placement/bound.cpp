#include "unit/placement/bound.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace gemini::bound {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

struct Idle {
  int from, until;  // events: is idle after from, is used by until
};

}  // namespace

std::vector<std::int64_t> idle_capacities(const Trace& trace, const ChunkFacts& each, int chunks,
                                          const Budget& budget) {
  std::vector<int> leases(at(chunks));
  std::int64_t open = 0;
  std::vector<std::int64_t> capacities;
  for (const TraceEvent& event : trace.events()) {
    for (const int chunk : event.chunks) leases[at(chunk)] = event.kind == TraceEvent::Kind::begin ? 1 : 0;
    open += static_cast<std::int64_t>(event.opens.size()) - static_cast<std::int64_t>(event.closes.size());
    const std::int64_t leased = chunks - std::count(leases.begin(), leases.end(), 0);
    const std::int64_t room =
        static_cast<std::int64_t>(budget.fraction * static_cast<double>(budget.limit_bytes)) -
        event.non_model_bytes - leased * each.slot_bytes - open * each.gradient_bytes;
    capacities.push_back(std::max<std::int64_t>(room, 0) / each.slot_bytes);
  }
  return capacities;
}

std::int64_t fewest_gathers(const Trace& trace, int chunks, const std::vector<std::int64_t>& capacities) {
  std::vector<int> leases(at(chunks)), idle_since(at(chunks), -1);
  std::vector<Idle> idles;  // by their right ends
  std::int64_t uses = 0;
  for (int e = 0; e < trace.size(); ++e) {
    const TraceEvent& event = trace.events()[at(e)];
    for (const int chunk : event.chunks) {
      if (event.kind == TraceEvent::Kind::end) {
        leases[at(chunk)] = 0;
        idle_since[at(chunk)] = e;
      } else if (leases[at(chunk)]++ == 0) {
        ++uses;
        if (idle_since[at(chunk)] >= 0) idles.push_back({idle_since[at(chunk)], e});
      }
    }
  }
  std::vector<std::int64_t> left = capacities;
  std::int64_t kept = 0;
  for (const Idle& idle : idles) {
    if (std::any_of(left.begin() + idle.from, left.begin() + idle.until,
                    [](std::int64_t room) { return room == 0; }))
      continue;
    for (int e = idle.from; e < idle.until; ++e) --left[at(e)];
    ++kept;
  }
  return uses - kept;
}

std::int64_t fewest_gathers_tried(const Trace& trace, int chunks,
                                  const std::vector<std::int64_t>& capacities) {
  std::vector<int> leases(at(chunks));
  std::map<unsigned, std::int64_t> fewest = {{0U, 0}};  // by set of copies
  for (int e = 0; e < trace.size(); ++e) {
    const TraceEvent& event = trace.events()[at(e)];
    unsigned needed = 0, leased = 0;
    for (const int chunk : event.chunks) {
      leases[at(chunk)] = event.kind == TraceEvent::Kind::begin ? 1 : 0;
      if (event.kind == TraceEvent::Kind::begin) needed |= 1U << chunk;
    }
    for (int chunk = 0; chunk < chunks; ++chunk)
      if (leases[at(chunk)] > 0) leased |= 1U << chunk;
    std::map<unsigned, std::int64_t> after;
    for (const auto& [set, gathers] : fewest) {
      const std::int64_t now = gathers + __builtin_popcount(needed & ~set);
      for (unsigned next = 0; next < 1U << chunks; ++next) {
        const bool reachable = (next & ~(set | needed)) == 0 && (next & leased) == leased;
        if (!reachable || __builtin_popcount(next & ~leased) > capacities[at(e)]) continue;
        const auto entry = after.emplace(next, now).first;
        entry->second = std::min(entry->second, now);
      }
    }
    fewest = std::move(after);
  }
  std::int64_t least = fewest.begin()->second;
  for (const auto& [set, gathers] : fewest) least = std::min(least, gathers);
  return least;
}

}  // namespace gemini::bound
