// Bytes that policies gather in one iteration, against the fewest with which it can be run.
#include <gtest/gtest.h>

#include <random>

#include "placement/retention.hpp"
#include "placement/simulate.hpp"
#include "unit/placement/bound.hpp"
#include "unit/placement/models.hpp"
#include "unit/placement/naive_policy.hpp"
#include "unit/placement/traces.hpp"

namespace gemini {
namespace {

constexpr std::int64_t kSlot = 1000;

TEST(Bound, IsWhatTryingEverythingFinds) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const int chunks = 2 + static_cast<int>(random() % 4);
    std::vector<TraceEvent> events;
    std::vector<std::int64_t> capacities;
    std::vector<std::vector<int>> open;  // operations that have begun
    std::vector<int> leases(static_cast<std::size_t>(chunks));
    for (int i = 0; i < 14 || !open.empty(); ++i) {
      if (i < 14 && (open.empty() || random() % 2 == 0)) {
        std::vector<int> needed;
        for (int c = 0; c < chunks; ++c)
          if (random() % 3 == 0) needed.push_back(c);
        for (const int c : needed) ++leases[static_cast<std::size_t>(c)];
        events.push_back(traces::begin(needed));
        open.push_back(needed);
      } else {
        std::vector<int> idle;
        for (const int c : open.back())
          if (--leases[static_cast<std::size_t>(c)] == 0) idle.push_back(c);
        events.push_back(traces::end(idle));
        open.pop_back();
      }
      capacities.push_back(static_cast<std::int64_t>(random() % 4));
    }
    const Trace trace(events, chunks);
    EXPECT_EQ(bound::fewest_gathers(trace, chunks, capacities),
              bound::fewest_gathers_tried(trace, chunks, capacities))
        << "round " << round;
  }
}

class BoundTest : public ::testing::TestWithParam<models::Model> {
 protected:
  BoundTest()
      : trace_(models::trace_of(GetParam())), facts_(traces::equal_chunks(GetParam().chunks, kSlot)) {}

  [[nodiscard]] PolicyRules rules(std::int64_t slots) const {
    PolicyRules made;
    made.budget.limit_bytes = slots * kSlot;
    return made;
  }
  [[nodiscard]] std::int64_t gathers(Policy& policy, const PolicyRules& rules) const {
    policy.learn(trace_);
    const Playback played = Simulator(facts_, {rules.budget, {}, 0}).play(trace_, policy);
    return played.fits ? played.gathers : -1;
  }
  [[nodiscard]] std::int64_t fewest(const PolicyRules& rules) const {
    return bound::fewest_gathers(trace_, GetParam().chunks,
                                 bound::idle_capacities(trace_, facts_[0], GetParam().chunks, rules.budget));
  }
  // Slots of memory with which the largest operation just fits.
  [[nodiscard]] std::int64_t tightest() const {
    std::int64_t slots = 1;
    for (;; ++slots) {
      const auto policy = make_static_policy(facts_, rules(slots));
      if (gathers(*policy, rules(slots)) >= 0) return slots;
    }
  }

  Trace trace_;
  std::vector<ChunkFacts> facts_;
};

TEST_P(BoundTest, AutoAndPlannedGatherLittleMoreThanTheFewest) {
  const std::int64_t first = tightest();
  const std::int64_t last = 2 * GetParam().chunks;
  const Rates rates;
  for (std::int64_t slots = first; slots <= last; ++slots) {
    const PolicyRules with = rules(slots);
    const auto least = static_cast<double>(fewest(with));
    const auto automatic = make_auto_policy(facts_, with);
    const auto planned = make_planned_policy(facts_, with, &rates);
    const std::int64_t by_auto = gathers(*automatic, with);
    const std::int64_t by_plan = gathers(*planned, with);
    EXPECT_GE(static_cast<double>(by_auto), least) << slots;
    EXPECT_GE(static_cast<double>(by_plan), least) << slots;
    EXPECT_LE(static_cast<double>(by_auto), 1.05 * least) << slots;
    EXPECT_LE(static_cast<double>(by_plan), 1.02 * least) << slots;
  }
  EXPECT_EQ(fewest(rules(last)), GetParam().chunks) << "with room for everything each chunk is gathered once";
}

// What a plan keeps is a largest choice, not only a large one.
TEST_P(BoundTest, RetentionMissesTheFewest) {
  for (std::int64_t slots = tightest(); slots <= 2 * GetParam().chunks; ++slots) {
    const PolicyRules with = rules(slots);
    const Forecast forecast(trace_, facts_, with.budget);
    const Start empty{0, std::vector<bool>(facts_.size())};
    const Retention kept = retain(trace_, forecast, facts_, empty, 0);
    EXPECT_EQ(static_cast<std::int64_t>(kept.misses.size()), fewest(with)) << slots;
    for (int e = 0; e < trace_.size(); ++e) {
      const std::int64_t idle = kept.kept_bytes[static_cast<std::size_t>(e)];
      const std::int64_t filled = idle + forecast.leased(e) + forecast.gradients(e);
      EXPECT_TRUE(idle == 0 || filled <= forecast.soft(e)) << slots << " at " << e;
    }
  }
}

// Forward and back again is what these are best at; with weights that are read again on the way they fall
// behind.
TEST_P(BoundTest, CachesWithoutForesightGatherMore) {
  double most_by_lru = 0, most_by_fifo = 0;
  for (std::int64_t slots = tightest(); slots <= 2 * GetParam().chunks; ++slots) {
    const PolicyRules with = rules(slots);
    NaivePolicy lru(facts_, with.budget, NaivePolicy::Order::lru);
    NaivePolicy fifo(facts_, with.budget, NaivePolicy::Order::fifo);
    const auto least = static_cast<double>(fewest(with));
    const double by_lru = static_cast<double>(gathers(lru, with)) / least;
    const double by_fifo = static_cast<double>(gathers(fifo, with)) / least;
    EXPECT_GE(by_lru, 1) << slots;
    EXPECT_GE(by_fifo, 1) << slots;
    most_by_lru = std::max(most_by_lru, by_lru);
    most_by_fifo = std::max(most_by_fifo, by_fifo);
  }
  EXPECT_GT(most_by_lru, GetParam().rereads ? 1.2 : 1.0);
  EXPECT_GT(most_by_fifo, GetParam().rereads ? 1.2 : 1.0);
}

INSTANTIATE_TEST_SUITE_P(Models, BoundTest, ::testing::ValuesIn(models::all()),
                         [](const auto& model) { return std::to_string(model.index); });

}  // namespace
}  // namespace gemini
