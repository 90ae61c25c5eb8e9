// Where an iteration stands: phases, and where micro-batches begin and end. Knows no parameters.
#pragma once

#include <cstdint>

#include "base/error.hpp"

namespace gemini {

class MicroBatches {
 public:
  void set_phase(gemini_phase_t phase) { phase_ = phase; }
  [[nodiscard]] gemini_phase_t phase() const { return phase_; }

  // Would a FORWARD operation end the open micro-batch? One ends at the first FORWARD after a BACKWARD.
  [[nodiscard]] bool forward_ends_one() const { return backward_seen_; }
  // Throws if a FORWARD operation would open more than `accumulate` of them.
  void check_forward(std::int64_t accumulate) const {
    if (finished_ + (forward_ends_one() ? 1 : 0) >= accumulate)
      fail(GEMINI_ERR_STATE,
           "a FORWARD operation would open micro-batch {}, but accumulate = {}; call gemini_step first",
           finished_ + 2, accumulate);
  }
  // No other micro-batch comes before the step.
  [[nodiscard]] bool is_last(std::int64_t accumulate) const { return finished_ + 1 >= accumulate; }
  // Throws unless a step may follow.
  void check_step(std::int64_t accumulate) const {
    if (finished_ == 0 && !backward_seen_)
      fail(GEMINI_ERR_STATE, "there was no BACKWARD operation since the last step");
    const std::int64_t complete = finished_ + (backward_seen_ ? 1 : 0);
    if (complete < accumulate)
      fail(GEMINI_ERR_STATE, "{} of accumulate = {} micro-batches are complete", complete, accumulate);
  }

  void forward() { open_ = true; }
  void backward() { open_ = backward_seen_ = true; }
  void finish_one() {
    ++finished_;
    ++number_;
    open_ = backward_seen_ = false;
  }
  // After a step or discard.
  void restart() {
    finished_ = 0;
    ++number_;
    open_ = backward_seen_ = false;
    phase_ = GEMINI_FORWARD;
  }

  // Grows with every micro-batch of the run; from 1.
  [[nodiscard]] std::int64_t number() const { return number_; }
  // Something of an iteration is under way.
  [[nodiscard]] bool idle() const { return finished_ == 0 && !open_; }

 private:
  gemini_phase_t phase_ = GEMINI_FORWARD;
  std::int64_t number_ = 1;
  std::int64_t finished_ = 0;  // since the last step
  bool open_ = false;
  bool backward_seen_ = false;
};

}  // namespace gemini
