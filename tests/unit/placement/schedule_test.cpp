// Schedules of a whole iteration: what starts when.
#include "placement/schedule.hpp"

#include <gtest/gtest.h>

#include "unit/placement/traces.hpp"

namespace gemini {
namespace {

bool operator==(const Schedule::Gather& a, const Schedule::Gather& b) {
  return a.chunk == b.chunk && a.issue == b.issue && a.use == b.use;
}

Budget budget(std::int64_t bytes) {
  Budget made;
  made.limit_bytes = bytes;
  return made;
}

class ScheduleTest : public ::testing::Test {
 protected:
  // Gathers take 10 ns for each slot of 10 bytes.
  Schedule make(const Trace& trace, const std::vector<ChunkFacts>& facts, std::int64_t limit, int depth,
                std::int64_t reserved = 0, const std::vector<int>& present = {}) {
    Start start{0, std::vector<bool>(facts.size())};
    for (const int chunk : present) start.present[static_cast<std::size_t>(chunk)] = true;
    return make_schedule(trace, Forecast(trace, facts, budget(limit)), facts, {1, 0, 1}, start, reserved,
                         depth);
  }
  static std::vector<int> issues(const Schedule& schedule) {
    std::vector<int> made;
    for (const Schedule::Gather& gather : schedule.gathers) made.push_back(gather.issue);
    return made;
  }
};

// Begins at 0, 2, 4, 6, 8.
Trace five(std::int64_t compute_ns) {
  return traces::forward({{0}, {1}, {2}, {3}, {4}}, 5, compute_ns);
}

TEST_F(ScheduleTest, GathersStartWhenTheLinkNeedsThemTo) {
  const auto facts = traces::equal_chunks(5, 10);
  EXPECT_EQ(issues(make(five(10), facts, -1, -1)), (std::vector<int>{0, 0, 2, 4, 6}))
      << "one operation ahead";
  EXPECT_EQ(issues(make(five(20), facts, -1, -1)), (std::vector<int>{0, 0, 2, 4, 6}));
  EXPECT_EQ(issues(make(five(5), facts, -1, -1)), (std::vector<int>{0, 0, 0, 0, 4}))
      << "too slow for all to be in time";
}

TEST_F(ScheduleTest, ALongGatherStartsMoreOperationsAhead) {
  auto facts = traces::equal_chunks(5, 10);
  facts[4].wire_bytes = 45;
  EXPECT_EQ(issues(make(five(20), facts, -1, -1)), (std::vector<int>{0, 0, 0, 2, 2}))
      << "and those before it make way";
}

TEST_F(ScheduleTest, GathersAreInTimeBehindReductions) {
  std::vector<TraceEvent> events = {traces::begin({0}, {0}, 100), traces::end({0}, {0}),
                                    traces::begin({1}, {}, 10),   traces::end({1}),
                                    traces::begin({2}, {}, 10),   traces::end({2})};
  auto facts = traces::equal_chunks(3, 10);
  EXPECT_EQ(issues(make(Trace(events, 3), facts, -1, -1)), (std::vector<int>{0, 0, 0}))
      << "the reduction takes the link while chunk 1 is in use";
  facts[0].gradient_bytes = 0;
  EXPECT_EQ(issues(make(Trace(events, 3), facts, -1, -1)), (std::vector<int>{0, 0, 2}));
}

TEST_F(ScheduleTest, RoomAndDepthBoundHowFarAhead) {
  const auto facts = traces::equal_chunks(5, 10);
  EXPECT_EQ(issues(make(five(5), facts, 30, -1)), (std::vector<int>{0, 0, 0, 2, 4}))
      << "three copies at a time";
  EXPECT_EQ(issues(make(five(5), facts, 10, -1)), (std::vector<int>{0, 2, 4, 6, 8})) << "on demand";
  EXPECT_EQ(issues(make(five(5), facts, -1, 1)), (std::vector<int>{0, 0, 2, 4, 6}));
  EXPECT_EQ(issues(make(five(5), facts, -1, 2)), (std::vector<int>{0, 0, 0, 2, 4}));
  EXPECT_EQ(issues(make(five(5), facts, -1, 0)), (std::vector<int>{0, 2, 4, 6, 8}));
}

TEST_F(ScheduleTest, ACopyThatGoesComesBackOnlyAfterItsLastLease) {
  // In two slots chunk 0 cannot stay while 1 and 2 are used together.
  const Trace trace = traces::forward({{0}, {1, 2}, {0}}, 3, 1);
  const Schedule schedule = make(trace, traces::equal_chunks(3, 10), 20, -1);
  EXPECT_EQ(schedule.releases[1], std::vector<int>{0});
  const Schedule::Gather back = schedule.gathers.back();
  EXPECT_TRUE(back == (Schedule::Gather{0, 4, 4})) << back.issue;
  // With room reserved for gathers ahead it goes although it could stay.
  const Schedule wide = make(trace, traces::equal_chunks(3, 10), 50, -1, 30);
  EXPECT_EQ(wide.releases[1], std::vector<int>{0});
  EXPECT_EQ(wide.gathers.back().issue, 2) << "not before the release after event 1";
}

TEST_F(ScheduleTest, CopiesFromBeforeAreKeptOrUnwanted) {
  const auto facts = traces::equal_chunks(3, 10, true);
  const Trace trace = traces::forward({{0}, {1}, {2}}, 3, 1);
  const Schedule all = make(trace, facts, -1, 0, 0, {0, 1, 2});
  EXPECT_TRUE(all.gathers.empty());
  const Schedule tight = make(trace, facts, 20, 0, 0, {1, 2});
  EXPECT_EQ(tight.unwanted, std::vector<int>{2});
  EXPECT_EQ(issues(tight), (std::vector<int>{0, 4}));
}

}  // namespace
}  // namespace gemini
