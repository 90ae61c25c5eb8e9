// An operation that tells a timeline when it was posted and when it was complete.
#pragma once

#include <memory>
#include <utility>

#include "base/timeline.hpp"
#include "collectives/comm_queue.hpp"

namespace gemini {

class RecordedOperation final : public Operation {
 public:
  RecordedOperation(std::unique_ptr<Operation> real, Timeline& timeline, const TimelineEvent& event)
      : real_(std::move(real)), timeline_(timeline), event_(event) {}

  bool poll() override {
    if (!posted_) event_.begin_ns = timeline_.now_ns();
    posted_ = true;
    if (!real_->poll()) return false;
    event_.end_ns = timeline_.now_ns();
    timeline_.add(event_);
    return true;
  }
  [[nodiscard]] Clock::time_point idle_until() const override { return real_->idle_until(); }

 private:
  std::unique_ptr<Operation> real_;
  Timeline& timeline_;
  TimelineEvent event_;
  bool posted_ = false;
};

// The operation itself where there is no timeline.
inline std::unique_ptr<Operation> recorded(std::unique_ptr<Operation> operation, Timeline* timeline,
                                           const TimelineEvent& event) {
  if (timeline == nullptr) return operation;
  return std::make_unique<RecordedOperation>(std::move(operation), *timeline, event);
}

}  // namespace gemini
