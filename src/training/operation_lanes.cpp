#include "training/operation_lanes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gemini {
namespace {

const char* name_of(gemini_phase_t phase) {
  switch (phase) {
    case GEMINI_FORWARD: return "forward";
    case GEMINI_BACKWARD: return "backward";
    case GEMINI_RECOMPUTE: return "recompute";
    case GEMINI_INFERENCE: return "inference";
  }
  return "";
}

std::string names_of(const std::vector<Parameter*>& params) {
  constexpr std::size_t kNamed = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(kNamed, params.size()); ++i)
    names += (i == 0 ? "" : ", ") + params[i]->name;
  if (params.size() > kNamed) names += fmt::format(" and {} more", params.size() - kNamed);
  return names;
}

}  // namespace

void OperationLanes::began(Timeline& timeline, const std::vector<Parameter*>& params, gemini_phase_t phase) {
  if (params.empty()) return;
  const auto free =
      std::find_if(lanes_.begin(), lanes_.end(), [](const Lane& l) { return l.leased.empty(); });
  Lane& lane = free == lanes_.end() ? lanes_.emplace_back() : *free;
  lane.leased.assign(params.begin(), params.end());
  lane.event.lane = static_cast<std::uint16_t>(&lane - lanes_.data());
  lane.event.label = timeline.label(names_of(params));
  lane.event.what = name_of(phase);
  lane.event.begin_ns = timeline.now_ns();
}

template <class Predicate>
OperationLanes::Lane* OperationLanes::last_that(Predicate&& holds) {
  Lane* last = nullptr;
  for (Lane& lane : lanes_)
    if (holds(lane) && (last == nullptr || lane.event.begin_ns >= last->event.begin_ns)) last = &lane;
  return last;
}

void OperationLanes::ended(Timeline& timeline, const std::vector<Parameter*>& params) {
  const std::int64_t now = timeline.now_ns();
  Lane* const same = last_that([&](const Lane& lane) {
    return std::equal(params.begin(), params.end(), lane.leased.begin(), lane.leased.end());
  });
  for (const Parameter* param : params) {
    const auto has = [&](const Lane& lane) {
      return std::find(lane.leased.begin(), lane.leased.end(), param) != lane.leased.end();
    };
    Lane* const lane = same != nullptr ? same : last_that(has);
    if (lane == nullptr) continue;
    lane->leased.erase(std::find(lane->leased.begin(), lane->leased.end(), param));
    if (!lane->leased.empty()) continue;
    lane->event.end_ns = now;
    timeline.add(lane->event);
  }
}

}  // namespace gemini
