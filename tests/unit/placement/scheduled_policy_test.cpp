// A schedule against an iteration that is not what it was made for.
#include "placement/scheduled_policy.hpp"

#include <gtest/gtest.h>

#include "unit/placement/traces.hpp"

namespace gemini {
namespace {

using Copy = ChunkStatus::Copy;
using Kind = Action::Kind;
using Actions = std::vector<Action>;

class ScheduledPolicyTest : public ::testing::Test {
 protected:
  void make(const Trace& trace, std::int64_t limit, int scheduled_depth,
            const std::vector<int>& present = {}) {
    const auto& facts = facts_;
    trace_ = trace;
    chunks_.assign(5, {});
    PolicyRules rules;
    rules.budget.limit_bytes = limit;
    rules.prefetch = -1;
    policy_ = std::make_unique<ScheduledPolicy>(facts, rules);
    policy_->learn(trace_);
    Start start{0, std::vector<bool>(5)};
    for (const int chunk : present) {
      start.present[static_cast<std::size_t>(chunk)] = true;
      chunks_[static_cast<std::size_t>(chunk)].copy = Copy::gathered;
    }
    policy_->follow(make_schedule(trace_, Forecast(trace_, facts, rules.budget), facts, {1, 0, 0}, start, 0,
                                  scheduled_depth));
  }
  Actions before(int position, std::int64_t in_use) {
    Actions actions;
    const TraceEvent& event = trace_.events()[static_cast<std::size_t>(position)];
    policy_->before({&event.chunks, 0}, {&trace_, position}, chunks_, in_use, actions);
    return actions;
  }
  Actions after(int position) {
    Actions actions;
    const TraceEvent& event = trace_.events()[static_cast<std::size_t>(position)];
    policy_->after(event.chunks, {&trace_, position}, chunks_, actions);
    return actions;
  }

  std::vector<ChunkFacts> facts_ = traces::equal_chunks(5, 10, true);
  Trace trace_;
  std::vector<ChunkStatus> chunks_;
  std::unique_ptr<ScheduledPolicy> policy_;
};

TEST_F(ScheduledPolicyTest, StartsLaterWhatDoesNotFitNow) {
  const Trace trace = traces::forward({{0}, {1}, {2}, {3}, {4}}, 5, 5);
  make(trace, 30, -1);
  EXPECT_EQ(before(0, 0), (Actions{{Kind::gather, 0}, {Kind::prefetch, 1}, {Kind::prefetch, 2}}));
  EXPECT_EQ(before(0, 10), (Actions{{Kind::gather, 0}, {Kind::prefetch, 1}})) << "10 bytes of something else";
  chunks_[1].copy = Copy::arriving;
  EXPECT_EQ(before(2, 20), (Actions{{Kind::prefetch, 2}}));
}

TEST_F(ScheduledPolicyTest, KeepsAndReleasesAsScheduled) {
  const Trace trace = traces::forward({{0}, {1, 2}, {0}}, 5, 5);
  make(trace, 20, 0);
  before(0, 0);
  chunks_[0].copy = Copy::gathered;
  EXPECT_EQ(after(1), (Actions{{Kind::release, 0}})) << "it would have to go at the next operation";
  make(trace, 30, 0);
  before(0, 0);
  chunks_[0].copy = Copy::gathered;
  EXPECT_TRUE(after(1).empty());
}

TEST_F(ScheduledPolicyTest, UnwantedCopiesGoBeforeRoomIsShort) {
  make(traces::forward({{0}, {1}, {0, 1}}, 5, 5), 20, 0, {1, 4});
  EXPECT_EQ(before(0, 10), (Actions{{Kind::release, 4}, {Kind::gather, 0}}));
}

TEST_F(ScheduledPolicyTest, DoesAsAutoWhereACopyIsMissing) {
  const Trace trace = traces::forward({{0}, {1}, {0}, {2}}, 5, 5);
  make(trace, 100, 0);  // a schedule of gathers on demand, so that it can be told from auto
  EXPECT_EQ(before(0, 0), (Actions{{Kind::gather, 0}}));
  chunks_[0].copy = Copy::gathered;
  EXPECT_EQ(before(2, 10), (Actions{{Kind::gather, 1}}));
  chunks_[0].copy = Copy::absent;  // and expected to be here
  EXPECT_EQ(before(4, 0), (Actions{{Kind::gather, 0}, {Kind::prefetch, 2}}));
  chunks_[0].copy = Copy::absent;
  EXPECT_EQ(before(0, 0), (Actions{{Kind::gather, 0}})) << "the next iteration follows it again";
}

}  // namespace
}  // namespace gemini
