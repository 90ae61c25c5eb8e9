// The simulator against timelines made by hand, and against policies that break their promises.
#include "placement/simulate.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.hpp"
#include "unit/placement/traces.hpp"

namespace gemini {
namespace {

Machine machine(std::int64_t limit) {
  Machine made;
  made.budget.limit_bytes = limit;
  made.rates.gather_ns_per_byte = 2;
  made.rates.gather_latency_ns = 5;
  made.rates.reduce_ns_per_byte = 3;
  return made;
}

TEST(Simulator, GathersOnUseStallTheCaller) {
  const auto facts = traces::equal_chunks(2, 10);
  const auto policy = make_static_policy(facts, {});
  const Playback played =
      Simulator(facts, machine(-1)).play(traces::forward({{0}, {1}, {0}}, 2, 100), *policy);
  EXPECT_EQ(played.gathers, 3);
  EXPECT_EQ(played.gathered_bytes, 30);
  EXPECT_EQ(played.peak_bytes, 10);
  EXPECT_EQ(played.compute_ns, 300);
  EXPECT_EQ(played.link_ns, 3 * 25);
  EXPECT_EQ(played.total_ns, 300 + 3 * 25);
  EXPECT_DOUBLE_EQ(played.hidden(), 0);
}

TEST(Simulator, PrefetchesRunWhileTheCallerComputes) {
  const auto facts = traces::equal_chunks(2, 10);
  PolicyRules rules;
  rules.prefetch = 1;
  const auto policy = make_static_policy(facts, rules);
  const Trace trace = traces::forward({{0}, {1}}, 2, 15);
  policy->learn(trace);
  const Playback played = Simulator(facts, machine(-1)).play(trace, *policy);
  EXPECT_EQ(played.peak_bytes, 20);
  EXPECT_EQ(played.total_ns, 25 + 25 + 15) << "the second gather outlasts the first operation";
}

TEST(Simulator, GathersPassAfterReductions) {
  const auto facts = traces::equal_chunks(2, 10);
  std::vector<TraceEvent> events;
  for (const int chunk : {0, 1}) {
    events.push_back(traces::begin({chunk}, {chunk}, 1));
    events.push_back(traces::end({chunk}, {chunk}));
  }
  const Trace trace(events, 2);
  const auto policy = make_static_policy(facts, {});
  const Playback played = Simulator(facts, machine(20)).play(trace, *policy);
  EXPECT_EQ(played.total_ns, 2 * (25 + 1 + 30)) << "gather, compute, reduce, and again";
  EXPECT_EQ(played.peak_bytes, 20);
  const Playback short_of = Simulator(facts, machine(19)).play(trace, *policy);
  EXPECT_FALSE(short_of.fits);
  EXPECT_EQ(short_of.stopped_at, 0);
}

TEST(Simulator, TheThirdReductionWaitsForTheFirst) {
  const auto facts = traces::equal_chunks(3, 10);
  std::vector<TraceEvent> events = {traces::begin({0, 1, 2}, {0, 1, 2}, 1),
                                    traces::end({0, 1, 2}, {0, 1, 2})};
  events[1].compute_ns = 100;
  const auto policy = make_static_policy(facts, {});
  const Playback played = Simulator(facts, machine(-1)).play(Trace(events, 3), *policy);
  EXPECT_EQ(played.total_ns, 3 * 25 + 1 + 30 + 100);
  EXPECT_EQ(played.peak_bytes, 60);
}

// A policy out of two functions.
class Made final : public Policy {
 public:
  using Decide = std::function<std::vector<Action>(const Moment&)>;
  Made(Decide before, Decide after) : before_(std::move(before)), after_(std::move(after)) {}
  void before(const Need&, const Moment& moment, const std::vector<ChunkStatus>&, std::int64_t,
              std::vector<Action>& actions) override {
    actions = before_(moment);
  }
  void after(const std::vector<int>&, const Moment& moment, const std::vector<ChunkStatus>&,
             std::vector<Action>& actions) override {
    actions = after_(moment);
  }

 private:
  Decide before_, after_;
};

TEST(Simulator, FindsBrokenPromises) {
  using Kind = Action::Kind;
  const auto facts = traces::equal_chunks(2, 10);
  const Trace nested({traces::begin({0}), traces::begin({1}), traces::end({1}), traces::end({0})}, 2);
  const auto nothing = [](const Moment&) { return std::vector<Action>{}; };
  const auto play = [&](std::int64_t limit, const Made::Decide& before, const Made::Decide& after) {
    Made policy(before, after);
    return Simulator(facts, machine(limit)).play(nested, policy);
  };
  const auto gather = [](const Moment& moment) {
    return std::vector<Action>{{Kind::gather, moment.position}};
  };
  EXPECT_NO_THROW(play(-1, gather, nothing));
  EXPECT_THROW(play(-1, nothing, nothing), Error) << "needed and not gathered";
  EXPECT_THROW(play(-1, gather,
                    [](const Moment&) {
                      return std::vector<Action>{{Kind::release, 0}};
                    }),
               Error)
      << "leased and released";
  const auto both = [](const Moment& moment) {
    return moment.position > 0 ? std::vector<Action>{}
                               : std::vector<Action>{{Kind::gather, 0}, {Kind::prefetch, 1}};
  };
  EXPECT_NO_THROW(play(20, both, nothing));
  std::vector<TraceEvent> apart = traces::forward({{0}, {1}}, 2).events();
  Made greedy(both, nothing);
  EXPECT_THROW(Simulator(facts, machine(10)).play(Trace(apart, 2), greedy), Error) << "over the limit";
}

TEST(Simulator, NoCopyOutlivesTheStep) {
  const auto facts = traces::equal_chunks(2, 10);
  PolicyRules rules;
  rules.keep_share = 1;
  const auto policy = make_static_policy(facts, rules);
  const Trace trace = traces::forward({{0}, {1}}, 2);
  Simulator simulator(facts, machine(-1));
  EXPECT_EQ(simulator.play(trace, *policy).gathers, 2);
  EXPECT_EQ(simulator.chunks()[0].copy, ChunkStatus::Copy::absent);
  EXPECT_EQ(simulator.play(trace, *policy).gathers, 2);
}

}  // namespace
}  // namespace gemini
