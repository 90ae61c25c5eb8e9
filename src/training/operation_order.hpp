// The order of operations: what came in the last iteration, and whether this one does the same.
//
// While it does, decisions look ahead in the trace. At the first operation that differs the iteration is
// recorded to its end and becomes the trace of the next. One such order is kept for training and one for
// inference.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "placement/policy.hpp"
#include "placement/trace.hpp"

namespace gemini {

class OperationOrder {
 public:
  using Kind = TraceEvent::Kind;

  // Where an event stands in the known order; changes nothing.
  [[nodiscard]] Moment look(Kind kind, gemini_phase_t phase, const std::vector<int>& chunks) const;
  // The last event, if it was as known.
  [[nodiscard]] Moment now() const {
    return following_ && position_ > 0 ? Moment{&trace_, position_ - 1} : Moment{};
  }
  // It happened: returns where. non_model_bytes: the most since the event before.
  Moment advance(Kind kind, gemini_phase_t phase, const std::vector<int>& chunks,
                 std::int64_t non_model_bytes);
  // The most since the event before, where other than the next event asks for it.
  void keep_memory(std::int64_t non_model_bytes) { kept_bytes_ = std::max(kept_bytes_, non_model_bytes); }
  // Gradient buffers that the last event opened, or that were done with after it.
  void opened(int chunk) { log_buffer(chunk, true); }
  void closed(int chunk) { log_buffer(chunk, false); }
  // The library returns to its caller.
  void returns() {
    if (!following_) returned_ = Clock::now();
  }

  // Ends the iteration. What this rank saw, to be agreed as maxima: of every event, the memory until the next
  // and, if the order is new, the caller's time. All ranks have equally many.
  std::vector<std::int64_t> seen(std::int64_t non_model_bytes);
  // With the agreed numbers: the next iteration follows. True: decisions should look at the trace anew.
  bool learn(const std::vector<std::int64_t>& agreed, int chunks);
  // Ends the iteration without learning from it.
  void restart();
  // From elsewhere, before the first iteration.
  void adopt(Trace trace);

  // This iteration is (so far) not the known one.
  [[nodiscard]] bool records() const { return !following_; }
  [[nodiscard]] bool known() const { return trace_.size() > 0; }
  [[nodiscard]] const Trace& trace() const { return trace_; }
  [[nodiscard]] bool at_start() const { return position_ == 0; }
  [[nodiscard]] int events() const { return position_; }
  [[nodiscard]] std::uint64_t digest() const { return digest_; }  // of the events of this iteration
  [[nodiscard]] std::int64_t changes() const { return changes_; }
  void reset_changes() { changes_ = 0; }

 private:
  using Clock = std::chrono::steady_clock;
  // Operations alone do not tell them: a chunk's tensors may be used differently in the same operations.
  struct Buffer {
    int event, chunk;
    bool opened;
  };
  void log_buffer(int chunk, bool opened) {
    if (position_ > 0) buffers_.push_back({position_ - 1, chunk, opened});
  }
  void fill_in_buffers(std::vector<TraceEvent>& events) const;
  void leave_trace();
  void end_period(std::int64_t non_model_bytes);

  Trace trace_;
  bool following_ = false;
  int position_ = 0;  // events of this iteration
  std::uint64_t digest_ = 0;
  std::vector<TraceEvent> recording_;  // of this iteration, unless it follows the trace
  std::vector<Buffer> buffers_;        // in order
  std::vector<std::int64_t> memory_;   // by event
  std::int64_t kept_bytes_ = 0;
  Clock::time_point returned_{};
  std::int64_t changes_ = 0;
};

}  // namespace gemini
