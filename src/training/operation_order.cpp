#include "training/operation_order.hpp"

#include <utility>

namespace gemini {
namespace {

std::uint64_t mixed(std::uint64_t digest, std::uint64_t word) {
  digest = (digest ^ word) * 0x9E3779B97F4A7C15U;  // the golden ratio in 64 bits
  return digest ^ digest >> 29;
}

// Of the same operations.
bool same_buffers(const std::vector<TraceEvent>& a, const std::vector<TraceEvent>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](const TraceEvent& one, const TraceEvent& other) {
    return one.opens == other.opens && one.closes == other.closes;
  });
}

}  // namespace

Moment OperationOrder::look(Kind kind, gemini_phase_t phase, const std::vector<int>& chunks) const {
  if (!following_ || position_ == trace_.size()) return {};
  if (!trace_.events()[static_cast<std::size_t>(position_)].is(kind, phase, chunks)) return {};
  return {&trace_, position_};
}

// The events so far were the trace's.
void OperationOrder::leave_trace() {
  following_ = false;
  ++changes_;
  recording_.assign(trace_.events().begin(), trace_.events().begin() + position_);
}

void OperationOrder::end_period(std::int64_t non_model_bytes) {
  if (position_ > 0) memory_.push_back(std::max(kept_bytes_, non_model_bytes));
  kept_bytes_ = 0;
}

Moment OperationOrder::advance(Kind kind, gemini_phase_t phase, const std::vector<int>& chunks,
                               std::int64_t non_model_bytes) {
  end_period(non_model_bytes);
  const Moment moment = look(kind, phase, chunks);
  if (following_ && moment.trace == nullptr) leave_trace();
  if (!following_) {
    if (!recording_.empty())
      recording_.back().compute_ns =
          std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - returned_).count();
    TraceEvent event;
    event.kind = kind;
    event.phase = static_cast<std::uint8_t>(phase);
    event.chunks = chunks;
    recording_.push_back(std::move(event));
  }
  ++position_;
  digest_ = mixed(digest_, static_cast<std::uint64_t>(kind) << 8 | static_cast<std::uint64_t>(phase));
  for (const int chunk : chunks) digest_ = mixed(digest_, static_cast<std::uint64_t>(chunk));
  return moment;
}

// What opens and closes in one event is held until the next.
void OperationOrder::fill_in_buffers(std::vector<TraceEvent>& events) const {
  for (TraceEvent& event : events) {
    event.opens.clear();
    event.closes.clear();
  }
  for (const Buffer& buffer : buffers_) {
    auto at = static_cast<std::size_t>(buffer.event);
    std::vector<int>& opens = events[at].opens;
    if (buffer.opened) {
      opens.push_back(buffer.chunk);
      continue;
    }
    if (std::find(opens.begin(), opens.end(), buffer.chunk) != opens.end()) ++at;
    if (at < events.size()) events[at].closes.push_back(buffer.chunk);
  }
}

std::vector<std::int64_t> OperationOrder::seen(std::int64_t non_model_bytes) {
  end_period(non_model_bytes);
  if (following_ && position_ < trace_.size()) leave_trace();
  std::vector<std::int64_t> words = memory_;
  if (!following_)
    for (const TraceEvent& event : recording_) words.push_back(event.compute_ns);
  return words;
}

bool OperationOrder::learn(const std::vector<std::int64_t>& agreed, int chunks) {
  std::vector<TraceEvent> events = following_ ? trace_.events() : std::move(recording_);
  fill_in_buffers(events);
  bool changed = following_ ? !same_buffers(events, trace_.events()) : !events.empty();
  for (std::size_t e = 0; e < events.size(); ++e) {
    changed = changed || events[e].non_model_bytes != agreed[e];
    events[e].non_model_bytes = agreed[e];
    if (!following_) events[e].compute_ns = agreed[events.size() + e];
  }
  if (changed) trace_ = Trace(std::move(events), chunks);
  restart();
  return changed;
}

void OperationOrder::restart() {
  following_ = known();
  position_ = 0;
  digest_ = 0;
  recording_.clear();
  buffers_.clear();
  memory_.clear();
}

void OperationOrder::adopt(Trace trace) {
  trace_ = std::move(trace);
  restart();
}

}  // namespace gemini
