// placement = planned: the best of a few schedules, found by playing them before the iteration.
#include <tuple>
#include <utility>

#include "placement/scheduled_policy.hpp"
#include "placement/simulate.hpp"

namespace gemini {
namespace {

class PlannedPolicy final : public Policy {
 public:
  PlannedPolicy(const std::vector<ChunkFacts>& facts, const PolicyRules& rules, const Rates* rates)
      : facts_(facts), rules_(rules), rates_(rates), player_(facts, rules) {}

  void before(const Need& need, const Moment& moment, const std::vector<ChunkStatus>& chunks,
              std::int64_t in_use_bytes, std::vector<Action>& actions) override {
    if (moment.trace != nullptr && moment.position == 0) plan(*moment.trace, chunks, in_use_bytes);
    player_.before(need, moment, chunks, in_use_bytes, actions);
  }

  void after(const std::vector<int>& ended, const Moment& moment, const std::vector<ChunkStatus>& chunks,
             std::vector<Action>& actions) override {
    player_.after(ended, moment, chunks, actions);
  }

  [[nodiscard]] std::int64_t most(const Moment& moment) const override { return player_.most(moment); }
  [[nodiscard]] bool fetches_ahead() const override { return player_.fetches_ahead(); }

  void learn(const Trace& trace) override {
    player_.learn(trace);
    now_ = *rates_;
    planned_ = false;
  }

 private:
  // Again only where the iteration begins with other copies or other room than the one planned for.
  void plan(const Trace& trace, const std::vector<ChunkStatus>& chunks, std::int64_t in_use_bytes) {
    Start start{in_use_bytes, std::vector<bool>(chunks.size())};
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      if (chunks[c].copy == ChunkStatus::Copy::absent || chunks[c].leases > 0) continue;
      start.present[c] = true;
      start.resting_bytes -= facts_[c].slot_bytes;
    }
    if (planned_ && start == start_) return;
    start_ = std::move(start);
    planned_ = true;
    player_.follow(best_schedule(trace));
  }

  // Memory kept free for gathers ahead costs gathers of what was given up for it: how much of it pays is
  // found by trying. No schedule, which is what auto does, is tried too.
  Schedule best_schedule(const Trace& trace) const {
    const Forecast forecast(trace, facts_, rules_.budget);
    std::int64_t slot = 0;
    for (const ChunkFacts& chunk : facts_) slot = std::max(slot, chunk.slot_bytes);
    if (slot == 0) return {};
    const std::int64_t most = rules_.prefetch == 0 ? 0
                                                   : std::min(slot * static_cast<std::int64_t>(facts_.size()),
                                                              rules_.budget.hard());
    Schedule best;
    auto least = cost(play(trace, best));
    for (std::int64_t reserved = 0; reserved <= most; reserved = std::max(slot, 2 * reserved)) {
      Schedule schedule = make_schedule(trace, forecast, facts_, now_, start_, reserved, rules_.prefetch);
      const auto its = cost(play(trace, schedule));
      if (its >= least) continue;
      least = its;
      best = std::move(schedule);
    }
    return best;
  }

  static std::tuple<std::int64_t, std::int64_t> cost(const Playback& played) {
    return {played.stall_ns(), played.gathered_bytes};
  }

  Playback play(const Trace& trace, const Schedule& schedule) const {
    ScheduledPolicy player(facts_, rules_);
    player.learn(trace);
    player.follow(schedule);
    std::vector<ChunkStatus> chunks(facts_.size());
    for (std::size_t c = 0; c < chunks.size(); ++c)
      if (start_.present[c]) chunks[c].copy = ChunkStatus::Copy::gathered;
    return Simulator(facts_, {rules_.budget, now_, start_.resting_bytes}, std::move(chunks))
        .play(trace, player);
  }

  const std::vector<ChunkFacts>& facts_;  // the caller's; they change between iterations
  PolicyRules rules_;
  const Rates* rates_;
  Rates now_;
  ScheduledPolicy player_;
  Start start_;  // what is planned for
  bool planned_ = false;
};

}  // namespace

std::unique_ptr<Policy> make_planned_policy(const std::vector<ChunkFacts>& facts, const PolicyRules& rules,
                                            const Rates* rates) {
  return std::make_unique<PlannedPolicy>(facts, rules, rates);
}

}  // namespace gemini
