// What one training iteration does, in order, as all ranks know it: the only thing decisions look ahead in.
//
// Only what every rank does alike is in it: operations on sharded chunks. Operations on RESIDENT or IGNORED
// parameters alone may differ over ranks; their time and memory count for the event before.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace gemini {

struct TraceEvent {
  enum class Kind : std::uint8_t { begin, end } kind = Kind::begin;  // pre_op, post_op
  std::uint8_t phase = 0;                                            // of the leases, gemini_phase_t
  std::vector<int> chunks;           // leased by the begin; leased by nobody any more after the end
  std::vector<int> opens;            // gradient buffers that a begin opens
  std::vector<int> closes;           // gradient buffers handed to a reduction, before opens
  std::int64_t compute_ns = 0;       // the caller's own time until the next event; longest over ranks
  std::int64_t non_model_bytes = 0;  // most until the next event; largest over ranks

  [[nodiscard]] bool is(Kind a_kind, int a_phase, const std::vector<int>& its_chunks) const {
    return kind == a_kind && phase == a_phase && chunks == its_chunks;
  }
};

class Trace {
 public:
  static constexpr int kNever = std::numeric_limits<int>::max();

  Trace() = default;
  Trace(std::vector<TraceEvent> events, int chunks);

  // Can these events be an iteration? For traces that come from outside: policies rely on it.
  static bool well_formed(const std::vector<TraceEvent>& events, int chunks);

  [[nodiscard]] const std::vector<TraceEvent>& events() const { return events_; }
  [[nodiscard]] int size() const { return static_cast<int>(events_.size()); }
  // Position of the first begin after `position` (-1: from the start) that leases the chunk; kNever.
  [[nodiscard]] int next_use(int chunk, int position) const;

 private:
  std::vector<TraceEvent> events_;
  std::vector<std::vector<int>> uses_;  // by chunk, ascending
  // What is asked for most often: the next uses of an event's own chunks, for all events in turn.
  std::vector<std::size_t> first_;  // of an event in next_
  std::vector<int> next_;
};

}  // namespace gemini
