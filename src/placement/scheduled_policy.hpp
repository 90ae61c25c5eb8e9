// Follows a schedule for as long as copies are where it expects them; else does what auto does.
#pragma once

#include <utility>
#include <vector>

#include "placement/auto_policy.hpp"
#include "placement/schedule.hpp"

namespace gemini {

class ScheduledPolicy final : public AutoPolicy {
 public:
  using AutoPolicy::AutoPolicy;

  // From the next first operation on; made for the trace learnt last.
  void follow(Schedule schedule) { schedule_ = std::move(schedule); }

  void before(const Need& need, const Moment& moment, const std::vector<ChunkStatus>& chunks,
              std::int64_t in_use_bytes, std::vector<Action>& actions) override;
  void learn(const Trace& trace) override;

 protected:
  [[nodiscard]] bool keeps(int chunk, const Moment& moment) const override;
  void prefetch(const Moment& moment, const std::vector<ChunkStatus>& chunks) override;

 private:
  bool expected(const Need& need, const Moment& moment, const std::vector<ChunkStatus>& chunks);

  Schedule schedule_;
  bool following_ = false;
  std::size_t due_ = 0;   // of the gathers: the first that is used now or later
  std::size_t next_ = 0;  // the first that has not been asked for
};

}  // namespace gemini
