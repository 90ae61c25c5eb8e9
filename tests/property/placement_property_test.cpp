// Policies over random iterations. That the limit holds at every moment, that what an operation needs is
// there, and that nothing leased or needed goes, the simulator checks: it stops only where an operation's own
// needs, with what is leased and open, exceed the limit, and throws at a broken promise.
#include <gtest/gtest.h>

#include <memory>

#include "placement/simulate.hpp"
#include "property/placement_traces.hpp"

namespace gemini {
namespace {

using Copy = ChunkStatus::Copy;

struct Case {
  random_traces::Iteration iteration;
  PolicyRules rules;
  Rates rates;
  std::int64_t resting_bytes = 0;
};

Case random_case(unsigned seed) {
  random_traces::Maker make(seed);
  Case made;
  made.iteration = make.iteration();
  made.resting_bytes = make.chance(50) ? 0 : make.below(500);
  const int all = static_cast<int>(made.iteration.all_bytes);
  if (make.chance(90)) made.rules.budget.limit_bytes = made.resting_bytes + all / 20 + make.below(all);
  if (make.chance(50)) made.rules.budget.fraction = 0.5 + 0.1 * make.below(5);
  made.rules.prefetch = make.below(6) - 1;
  made.rules.keep_share = 0.25 * make.below(5);
  if (make.chance(80)) made.rates = {0.5 * make.below(6), 10.0 * make.below(5), 0.5 * make.below(4)};
  return made;
}

enum class Kind { fixed, automatic, planned };

std::unique_ptr<Policy> make_policy(Kind kind, const Case& with) {
  switch (kind) {
    case Kind::fixed: return make_static_policy(with.iteration.facts, with.rules);
    case Kind::automatic: return make_auto_policy(with.iteration.facts, with.rules);
    case Kind::planned: break;
  }
  return make_planned_policy(with.iteration.facts, with.rules, &with.rates);
}

// A policy next to its twin: both must decide alike, in the order promised, and give idle copies no room
// beyond the soft limit. The order may become unknown at some event.
class Watched final : public Policy {
 public:
  Watched(Kind kind, const Case& with)
      : with_(with),
        adapts_(kind != Kind::fixed),
        policy_(make_policy(kind, with)),
        twin_(make_policy(kind, with)) {}

  int unknown_from = Trace::kNever;

  void learn(const Trace& trace) override {
    policy_->learn(trace);
    twin_->learn(trace);
  }

  void before(const Need& need, const Moment& moment, const std::vector<ChunkStatus>& chunks,
              std::int64_t in_use_bytes, std::vector<Action>& actions) override {
    std::vector<Action> same;
    policy_->before(need, known(moment), chunks, in_use_bytes, actions);
    twin_->before(need, known(moment), chunks, in_use_bytes, same);
    EXPECT_EQ(actions, same);
    std::int64_t filled = in_use_bytes + need.gradient_bytes;
    std::vector<ChunkStatus> then = chunks;
    auto last = Action::Kind::release;
    int on_their_way = 0;
    for (const Action& action : actions) {
      EXPECT_GE(action.kind, last) << "releases, gathers, prefetches";
      last = action.kind;
      const auto c = static_cast<std::size_t>(action.chunk);
      const bool releases = action.kind == Action::Kind::release;
      filled += (releases ? -1 : 1) * with_.iteration.facts[c].slot_bytes;
      then[c].copy = releases                              ? Copy::absent
                     : action.kind == Action::Kind::gather ? Copy::gathered
                                                           : Copy::arriving;
    }
    for (const int chunk : *need.chunks) {
      then[static_cast<std::size_t>(chunk)].copy = Copy::gathered;
      ++then[static_cast<std::size_t>(chunk)].leases;
    }
    for (const ChunkStatus& chunk : then) on_their_way += chunk.copy == Copy::arriving ? 1 : 0;
    EXPECT_TRUE(with_.rules.prefetch < 0 || on_their_way <= with_.rules.prefetch) << on_their_way;
    check_room(moment, then, filled);
    filled_ = filled;
  }

  void after(const std::vector<int>& ended, const Moment& moment, const std::vector<ChunkStatus>& chunks,
             std::vector<Action>& actions) override {
    std::vector<Action> same;
    policy_->after(ended, known(moment), chunks, actions);
    twin_->after(ended, known(moment), chunks, same);
    EXPECT_EQ(actions, same);
    std::vector<ChunkStatus> then = chunks;
    for (const int chunk : moment.trace != nullptr ? event(moment).closes : std::vector<int>{})
      filled_ -= with_.iteration.facts[static_cast<std::size_t>(chunk)].gradient_bytes;
    for (const Action& action : actions) {
      then[static_cast<std::size_t>(action.chunk)].copy = Copy::absent;
      filled_ -= with_.iteration.facts[static_cast<std::size_t>(action.chunk)].slot_bytes;
    }
    check_room(moment, then, filled_);
  }

 private:
  [[nodiscard]] Moment known(Moment moment) const {
    if (moment.position >= unknown_from) moment.trace = nullptr;
    return moment;
  }
  [[nodiscard]] static const TraceEvent& event(const Moment& moment) {
    return moment.trace->events()[static_cast<std::size_t>(moment.position)];
  }
  void check_room(const Moment& moment, const std::vector<ChunkStatus>& chunks, std::int64_t filled) const {
    if (!adapts_ || known(moment).trace == nullptr) return;
    bool idle = false;
    for (const ChunkStatus& chunk : chunks) idle = idle || (chunk.copy != Copy::absent && chunk.leases == 0);
    EXPECT_TRUE(!idle || filled <= with_.rules.budget.soft(event(moment).non_model_bytes)) << filled;
  }

  const Case& with_;
  bool adapts_;
  std::unique_ptr<Policy> policy_, twin_;
  std::int64_t filled_ = 0;
};

class PlacementProperty : public ::testing::TestWithParam<Kind> {};

TEST_P(PlacementProperty, KeepsItsPromises) {
  int played_through = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    const Case with = random_case(seed);
    Watched policy(GetParam(), with);
    Simulator simulator(with.iteration.facts, {with.rules.budget, with.rates, with.resting_bytes});
    const Trace& trace = with.iteration.trace;
    ASSERT_TRUE(Trace::well_formed(trace.events(), static_cast<int>(with.iteration.facts.size())));
    ASSERT_NO_THROW({
      if (!simulator.play(trace, policy, false).fits) continue;
      policy.learn(trace);
      for (int iteration = 0; iteration < 3; ++iteration) {
        const Playback played = simulator.play(trace, policy);
        ASSERT_TRUE(played.fits);
        EXPECT_LE(played.peak_bytes, with.rules.budget.hard());
        EXPECT_EQ(played.evicted_arriving_bytes, 0) << "an order kept to never gathers for nothing";
      }
      policy.unknown_from = static_cast<int>(seed) % trace.size();
      ASSERT_TRUE(simulator.play(trace, policy).fits);
      policy.unknown_from = Trace::kNever;
      ASSERT_TRUE(simulator.play(trace, policy).fits);
    });
    ++played_through;
    if (HasFailure()) return;
  }
  EXPECT_GT(played_through, 500);
}

TEST(PlannedPolicy, IsNeverSlowerThanAuto) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    const Case with = random_case(seed);
    const auto played = [&](Kind kind) {
      const auto policy = make_policy(kind, with);
      policy->learn(with.iteration.trace);
      return Simulator(with.iteration.facts, {with.rules.budget, with.rates, with.resting_bytes})
          .play(with.iteration.trace, *policy);
    };
    const Playback by_auto = played(Kind::automatic), by_plan = played(Kind::planned);
    EXPECT_LE(by_plan.stall_ns(), by_auto.stall_ns()) << seed;
    EXPECT_TRUE(by_plan.stall_ns() < by_auto.stall_ns() || by_plan.gathered_bytes <= by_auto.gathered_bytes)
        << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, PlacementProperty,
                         ::testing::Values(Kind::fixed, Kind::automatic, Kind::planned),
                         [](const auto& kind) {
                           return kind.param == Kind::fixed       ? "static"
                                  : kind.param == Kind::automatic ? "auto"
                                                                  : "planned";
                         });

}  // namespace
}  // namespace gemini
