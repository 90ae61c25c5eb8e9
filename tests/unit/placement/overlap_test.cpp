// How much of the link's time prefetching hides.
#include <gtest/gtest.h>

#include "placement/simulate.hpp"
#include "unit/placement/models.hpp"
#include "unit/placement/traces.hpp"

namespace gemini {
namespace {

constexpr int kOperations = 32;
constexpr std::int64_t kSlot = 1000;

Machine machine(std::int64_t slots) {
  Machine made;
  made.budget.limit_bytes = slots * kSlot;
  made.rates.gather_ns_per_byte = 1;
  made.rates.reduce_ns_per_byte = 1;
  return made;
}

class Overlap : public ::testing::Test {
 protected:
  enum class By { automatic, planned };

  // Equal operations that compute for as long as their gather takes.
  static Playback play(By by, int prefetch, std::int64_t slots) {
    std::vector<TraceEvent> events;
    for (int i = 0; i < kOperations; ++i) {
      events.push_back(traces::begin({i}, {}, kSlot));
      events.push_back(traces::end({i}));
    }
    return play(by, prefetch, slots, Trace(events, kOperations), kOperations);
  }
  static Playback play(By by, int prefetch, std::int64_t slots, const Trace& trace, int chunks) {
    const auto facts = traces::equal_chunks(chunks, kSlot);
    PolicyRules rules;
    rules.budget = machine(slots).budget;
    rules.prefetch = prefetch;
    const Rates rates = machine(slots).rates;
    const auto policy =
        by == By::automatic ? make_auto_policy(facts, rules) : make_planned_policy(facts, rules, &rates);
    policy->learn(trace);
    return Simulator(facts, machine(slots)).play(trace, *policy);
  }
};

TEST_F(Overlap, HidesGathersBehindEqualComputation) {
  for (const std::int64_t slots : {2, 3, 4, 8, 64}) {
    EXPECT_GE(play(By::automatic, -1, slots).hidden(), 0.90) << slots;
    EXPECT_GE(play(By::planned, -1, slots).hidden(), 0.95) << slots;
    EXPECT_GE(play(By::planned, 1, slots).hidden(), 0.95) << slots;
  }
}

TEST_F(Overlap, WithoutPrefetchOrRoomForItNothingIsHidden) {
  EXPECT_DOUBLE_EQ(play(By::automatic, 0, 8).hidden(), 0);
  EXPECT_DOUBLE_EQ(play(By::planned, 0, 8).hidden(), 0);
  EXPECT_DOUBLE_EQ(play(By::automatic, -1, 1).hidden(), 0);
  EXPECT_DOUBLE_EQ(play(By::planned, -1, 1).hidden(), 0);
}

// Operations of uneven length: what is short is hidden behind what is long only if fetched long ahead.
TEST_F(Overlap, PlannedFetchesFurtherAheadWhereOperationsAreUneven) {
  std::vector<TraceEvent> events;
  for (int i = 0; i < kOperations; ++i) {
    events.push_back(traces::begin({i}, {}, i % 8 == 0 ? 8 * kSlot : 10));
    events.push_back(traces::end({i}));
  }
  const Trace trace(events, kOperations);
  EXPECT_GE(play(By::planned, -1, 16, trace, kOperations).hidden(), 0.95);
  EXPECT_LT(play(By::planned, 1, 16, trace, kOperations).hidden(), 0.95);
}

// Memory kept free for gathers ahead is worth what it costs: planned stalls no longer than auto.
TEST_F(Overlap, PlannedStallsNoLongerThanAuto) {
  for (const models::Model& model : models::all()) {
    const Trace trace = models::trace_of(model, kSlot);
    for (std::int64_t slots = 8; slots <= 2 * model.chunks; slots += 3) {
      const Playback by_auto = play(By::automatic, -1, slots, trace, model.chunks);
      const Playback by_plan = play(By::planned, -1, slots, trace, model.chunks);
      EXPECT_LE(by_plan.stall_ns(), by_auto.stall_ns()) << model.name << " in " << slots << " slots";
    }
  }
}

}  // namespace
}  // namespace gemini
