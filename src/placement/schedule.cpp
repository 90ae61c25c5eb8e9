#include "placement/schedule.hpp"

#include <algorithm>
#include <utility>

namespace gemini {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

// When each event happens if nothing stalls.
std::vector<double> event_times(const Trace& trace) {
  std::vector<double> times;
  double now = 0;
  for (const TraceEvent& event : trace.events()) {
    times.push_back(now);
    now += static_cast<double>(event.compute_ns);
  }
  return times;
}

// How long reductions that each event hands over take the link.
std::vector<double> reduction_times(const Trace& trace, const Forecast& forecast, const Rates& rates) {
  std::vector<double> times;
  times.reserve(trace.events().size());
  for (int e = 0; e < trace.size(); ++e)
    times.push_back(rates.reduce_ns_per_byte * static_cast<double>(forecast.closed(e)));
  return times;
}

// When each gather must start at the latest for all of them to be in time, the reductions between them
// passing over the same link. Before 0 where that cannot be.
std::vector<double> latest_starts(const std::vector<Retention::Miss>& misses,
                                  const std::vector<ChunkFacts>& facts, const Rates& rates,
                                  const std::vector<double>& times, const std::vector<double>& reductions) {
  std::vector<double> starts(misses.size());
  double next_start = times.empty() ? 0 : times.back();
  int event = static_cast<int>(times.size()) - 1;
  for (std::size_t i = misses.size(); i-- > 0;) {
    const Retention::Miss& miss = misses[i];
    const double deadline = std::min(times[at(miss.use)], next_start);
    while (event >= 0 && times[at(event)] >= deadline) --event;
    next_start = deadline - rates.gather_latency_ns -
                 rates.gather_ns_per_byte * static_cast<double>(facts[at(miss.chunk)].wire_bytes);
    for (; event >= 0 && times[at(event)] >= next_start; --event) next_start -= reductions[at(event)];
    starts[i] = next_start;
  }
  return starts;
}

// What soft limits leave beside all that is leased, open or kept.
std::vector<std::int64_t> rooms(const Forecast& forecast, const Retention& retention, const Start& start) {
  std::vector<std::int64_t> rooms;
  rooms.reserve(retention.kept_bytes.size());
  for (int e = 0; e < static_cast<int>(retention.kept_bytes.size()); ++e)
    rooms.push_back(forecast.soft(e) - start.resting_bytes - forecast.gradients(e) - forecast.leased(e) -
                    retention.kept_bytes[at(e)]);
  return rooms;
}

// The first begin from `earliest` on, from which there is room for the copy until its use; the use: none.
int first_with_room(const Trace& trace, const std::vector<std::int64_t>& room, std::int64_t bytes,
                    int earliest, int use) {
  int found = use;
  for (int e = use - 1; e >= earliest && room[at(e)] >= bytes; --e)
    if (trace.events()[at(e)].kind == TraceEvent::Kind::begin) found = e;
  return found;
}

// The last begin before `use` that happens no later than `time`; else the first of all.
int last_begin(const Trace& trace, const std::vector<double>& times, double time, int use) {
  const auto after = std::upper_bound(times.begin(), times.begin() + use, time);
  int e = static_cast<int>(after - times.begin()) - 1;
  while (e > 0 && trace.events()[at(e)].kind != TraceEvent::Kind::begin) --e;
  return std::max(e, 0);
}

}  // namespace

Schedule make_schedule(const Trace& trace, const Forecast& forecast, const std::vector<ChunkFacts>& facts,
                       const Rates& rates, const Start& start, std::int64_t reserved_bytes, int depth) {
  Retention retention = retain(trace, forecast, facts, start, reserved_bytes);
  const std::vector<double> times = event_times(trace);
  const std::vector<double> starts =
      latest_starts(retention.misses, facts, rates, times, reduction_times(trace, forecast, rates));
  std::vector<std::int64_t> room = rooms(forecast, retention, start);
  Schedule schedule;
  int earliest = 0;  // gathers pass over the link in the order in which they are issued
  for (std::size_t i = 0; i < retention.misses.size(); ++i) {
    const Retention::Miss& miss = retention.misses[i];
    int issue = miss.use;
    if (depth != 0) {
      const std::size_t in_flight = static_cast<std::size_t>(std::max(depth, 0));
      if (depth > 0 && i >= in_flight) earliest = std::max(earliest, schedule.gathers[i - in_flight].use);
      const int wanted = last_begin(trace, times, starts[i], miss.use);
      issue = first_with_room(trace, room, facts[at(miss.chunk)].slot_bytes,
                              std::max({earliest, wanted, miss.absent_since + 1}), miss.use);
    }
    for (int e = issue; e < miss.use; ++e) room[at(e)] -= facts[at(miss.chunk)].slot_bytes;
    earliest = issue;
    schedule.gathers.push_back({miss.chunk, issue, miss.use});
  }
  schedule.releases = std::move(retention.releases);
  schedule.unwanted = std::move(retention.unwanted);
  return schedule;
}

}  // namespace gemini
