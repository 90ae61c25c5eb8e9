// The index of a trace: when a chunk is used next.
#include "placement/trace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "unit/placement/traces.hpp"

namespace gemini {
namespace {

TEST(Trace, FindsTheNextBeginThatLeasesAChunk) {
  const Trace trace = traces::forward({{0, 1}, {2}, {1}}, 4);  // begins at 0, 2, 4
  EXPECT_EQ(trace.size(), 6);
  EXPECT_EQ(trace.next_use(0, -1), 0);
  EXPECT_EQ(trace.next_use(0, 0), Trace::kNever);
  EXPECT_EQ(trace.next_use(1, 0), 4);
  EXPECT_EQ(trace.next_use(1, 3), 4);
  EXPECT_EQ(trace.next_use(1, 4), Trace::kNever);
  EXPECT_EQ(trace.next_use(2, -1), 2);
  EXPECT_EQ(trace.next_use(3, -1), Trace::kNever);
}

TEST(Trace, EndsAreNoUses) {
  const Trace trace({traces::begin({0}), traces::end({0}), traces::begin({0}), traces::end({0})}, 1);
  for (int position = -1; position < 4; ++position)
    EXPECT_EQ(trace.next_use(0, position), position < 0 ? 0 : position < 2 ? 2 : Trace::kNever) << position;
}

// Whichever way it is found: an event may name few chunks or many.
TEST(Trace, FindsTheNextUseFromEveryEvent) {
  std::mt19937 random(1);
  constexpr int kChunks = 24;
  std::vector<std::vector<int>> operations;
  for (int o = 0; o < 60; ++o) {
    std::vector<int> chunks(kChunks);
    std::iota(chunks.begin(), chunks.end(), 0);
    std::shuffle(chunks.begin(), chunks.end(), random);
    chunks.resize(1 + random() % (o % 3 == 0 ? kChunks : 3));
    operations.push_back(chunks);
  }
  const Trace trace = traces::forward(operations, kChunks);  // operation o begins at 2 o
  for (int position = -1; position <= trace.size(); ++position)
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      int expected = Trace::kNever;
      for (int o = 59; 2 * o > position && o >= 0; --o) {
        const std::vector<int>& its = operations[static_cast<std::size_t>(o)];
        if (std::find(its.begin(), its.end(), chunk) != its.end()) expected = 2 * o;
      }
      ASSERT_EQ(trace.next_use(chunk, position), expected) << chunk << " after " << position;
    }
}

TEST(Trace, ComparesOperationsByKindPhaseAndChunks) {
  const TraceEvent one = traces::begin({1, 2}, {1}, 5);
  const auto begin = TraceEvent::Kind::begin;
  EXPECT_TRUE(one.is(begin, one.phase, {1, 2}));
  EXPECT_FALSE(one.is(TraceEvent::Kind::end, one.phase, {1, 2}));
  EXPECT_FALSE(one.is(begin, GEMINI_RECOMPUTE, {1, 2}));
  EXPECT_FALSE(one.is(begin, one.phase, {2, 1}));
}

TEST(Trace, IsWellFormedIfItCanBeAnIteration) {
  using traces::begin;
  using traces::end;
  const auto well_formed = [](const std::vector<TraceEvent>& events) {
    return Trace::well_formed(events, 2);
  };
  EXPECT_TRUE(well_formed({}));
  EXPECT_TRUE(well_formed({begin({0}, {0}), begin({0, 1}), end({}, {0}), end({1}), end({0})}));
  EXPECT_TRUE(well_formed({begin({0}, {0}), end({0})})) << "the step closes the gradient";
  EXPECT_TRUE(well_formed({begin({0}, {0}), end({0}, {0}), begin({0}, {0}), end({0}, {0})})) << "reopened";
  EXPECT_FALSE(well_formed({end({})}));
  EXPECT_FALSE(well_formed({begin({0})})) << "leased at the end";
  EXPECT_FALSE(well_formed({begin({0}), end({0}), end({0})}));
  EXPECT_FALSE(well_formed({begin({2}), end({2})})) << "no such chunk";
  EXPECT_FALSE(well_formed({begin({-1}), end({-1})}));
  EXPECT_FALSE(well_formed({begin({0, 0}), end({0, 0})}));
  EXPECT_FALSE(well_formed({begin({0}, {0}), begin({0}, {0}), end({}), end({0})})) << "opened twice";
  EXPECT_FALSE(well_formed({begin({0}), end({0}, {0})})) << "closed and never opened";
}

TEST(Trace, AnEmptyOneHasNoEvents) {
  EXPECT_EQ(Trace().size(), 0);
  EXPECT_EQ(Trace({}, 2).next_use(1, -1), Trace::kNever);
}

}  // namespace
}  // namespace gemini
