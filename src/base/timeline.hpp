// What happened when on this rank, for people to look at. Costs nothing where there is none.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace gemini {

// Words are literals: they live as long as the program.
struct TimelineEvent {
  enum class Track : std::uint8_t { operations, library, gathers, reductions, moves, memory } track;
  bool ahead = false;          // a gather that was prefetched
  std::uint16_t lane = 0;      // operations that overlap lie in lanes of their own
  std::int32_t chunk = -1;     // gathers, reductions, moves
  std::int32_t label = -1;     // operations: see Timeline::label
  const char* what = "";       // phase, call, item, kind of memory
  const char* from = nullptr;  // places, where data moved
  const char* to = nullptr;
  std::int64_t bytes = 0;
  std::int64_t begin_ns = 0;  // since the epoch
  std::int64_t end_ns = 0;    // memory: unused
};

// The last events; older ones are dropped.
class Timeline {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 18;

  explicit Timeline(std::size_t most = kMost) : most_(most) { ring_.reserve(most); }

  // Now is the epoch. Ranks call it together, so that their clocks agree.
  void start() { epoch_ = Clock::now(); }
  [[nodiscard]] std::int64_t now_ns() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - epoch_).count();
  }

  // Any thread.
  void add(const TimelineEvent& event) noexcept;
  // The rest is the caller's thread alone.
  // A number for words that are made, and made again.
  [[nodiscard]] std::int32_t label(const std::string& words);
  [[nodiscard]] const std::vector<std::string>& labels() const { return labels_; }
  // Memory of that kind now; an event if it changed.
  void memory(const char* kind, std::int64_t bytes);

  struct Recorded {
    std::vector<TimelineEvent> events;  // as they were added
    std::int64_t dropped = 0;
  };
  [[nodiscard]] Recorded recorded() const;

 private:
  using Clock = std::chrono::steady_clock;

  std::size_t most_;
  Clock::time_point epoch_ = Clock::now();
  mutable std::mutex mutex_;
  std::vector<TimelineEvent> ring_;
  std::int64_t added_ = 0;
  std::map<std::string, std::int32_t> numbers_;
  std::vector<std::string> labels_;
  std::map<const char*, std::int64_t> memory_;
};

// An event that lasts as long as this object.
class TimelineSpan {
 public:
  TimelineSpan(Timeline* timeline, const TimelineEvent& event) : timeline_(timeline) {
    if (timeline_ == nullptr) return;
    event_ = event;
    event_.begin_ns = timeline_->now_ns();
  }
  ~TimelineSpan() {
    if (timeline_ == nullptr) return;
    event_.end_ns = timeline_->now_ns();
    timeline_->add(event_);
  }
  TimelineSpan(const TimelineSpan&) = delete;
  TimelineSpan& operator=(const TimelineSpan&) = delete;

 private:
  Timeline* timeline_;
  TimelineEvent event_{};
};

// Time in one of the library's calls.
inline TimelineEvent library_call(const char* name) {
  TimelineEvent event{TimelineEvent::Track::library};
  event.what = name;
  return event;
}

}  // namespace gemini
