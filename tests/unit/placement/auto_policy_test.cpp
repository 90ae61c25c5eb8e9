// The auto policy: what it keeps, gives up and fetches ahead.
#include <gtest/gtest.h>

#include "unit/placement/traces.hpp"

namespace gemini {
namespace {

using Copy = ChunkStatus::Copy;
using Kind = Action::Kind;
using Actions = std::vector<Action>;

class AutoPolicyTest : public ::testing::Test {
 protected:
  void make(std::vector<ChunkFacts> facts, Trace trace, std::int64_t limit, int prefetch = 0) {
    chunks_.assign(facts.size(), {});
    trace_ = std::move(trace);
    PolicyRules rules;
    rules.budget.limit_bytes = limit;
    rules.prefetch = prefetch;
    facts_ = facts;
    policy_ = make_auto_policy(facts_, rules);
    policy_->learn(trace_);
  }
  Actions before(int position, std::int64_t in_use, std::int64_t gradient_bytes = 0) {
    const TraceEvent& event = trace_.events()[static_cast<std::size_t>(position)];
    Actions actions;
    policy_->before({&event.chunks, gradient_bytes}, {&trace_, position}, chunks_, in_use, actions);
    return actions;
  }
  Actions after(int position) {
    const TraceEvent& event = trace_.events()[static_cast<std::size_t>(position)];
    Actions actions;
    policy_->after(event.chunks, {&trace_, position}, chunks_, actions);
    return actions;
  }

  std::vector<ChunkStatus> chunks_;
  Trace trace_;
  std::vector<ChunkFacts> facts_;
  std::unique_ptr<Policy> policy_;
};

TEST_F(AutoPolicyTest, WithoutAnOrderGathersOnUseAndReleasesAfter) {
  make(traces::equal_chunks(3, 10), traces::forward({{0}, {1}}, 3), -1, 2);
  const std::vector<int> needed = {1, 0};
  Actions actions;
  policy_->before({&needed, 0}, {}, chunks_, 0, actions);
  EXPECT_EQ(actions, (Actions{{Kind::gather, 1}, {Kind::gather, 0}}));
  chunks_[0].copy = chunks_[1].copy = Copy::gathered;
  chunks_[0].leases = 1;
  actions.clear();
  policy_->after(needed, {}, chunks_, actions);
  EXPECT_EQ(actions, (Actions{{Kind::release, 1}}));
}

TEST_F(AutoPolicyTest, GivesUpTheFurthestNextUseFirst) {
  make(traces::equal_chunks(4, 10), traces::forward({{3}, {1}, {0}, {2}}, 4), 30);
  chunks_[0].copy = chunks_[1].copy = chunks_[2].copy = Copy::gathered;
  EXPECT_EQ(before(0, 30), (Actions{{Kind::release, 2}, {Kind::gather, 3}}));
  EXPECT_EQ(before(0, 30, 10), (Actions{{Kind::release, 2}, {Kind::release, 0}, {Kind::gather, 3}}));
  chunks_[2].leases = 1;
  EXPECT_EQ(before(0, 30), (Actions{{Kind::release, 0}, {Kind::gather, 3}}));
}

TEST_F(AutoPolicyTest, ArrivingCopiesGoLast) {
  make(traces::equal_chunks(4, 10), traces::forward({{3}, {1}, {0}, {2}}, 4), 30);
  chunks_[0].copy = chunks_[1].copy = Copy::gathered;
  chunks_[2].copy = Copy::arriving;
  EXPECT_EQ(before(0, 30, 10), (Actions{{Kind::release, 0}, {Kind::release, 1}, {Kind::gather, 3}}));
  EXPECT_EQ(before(0, 30, 20),
            (Actions{{Kind::release, 0}, {Kind::release, 1}, {Kind::release, 2}, {Kind::gather, 3}}));
}

TEST_F(AutoPolicyTest, CopiesWithoutFurtherUseGoAtOnceAndTransientOnesAlways) {
  make(traces::equal_chunks(3, 10), traces::forward({{0, 1, 2}, {2}}, 3), -1);
  for (ChunkStatus& chunk : chunks_) chunk.copy = Copy::gathered;
  EXPECT_EQ(after(1), (Actions{{Kind::release, 0}, {Kind::release, 1}}));
  chunks_[1].transient = chunks_[2].transient = true;
  EXPECT_EQ(after(1), (Actions{{Kind::release, 0}, {Kind::release, 1}, {Kind::release, 2}}));
}

TEST_F(AutoPolicyTest, KeptCopiesMakeWayForOtherData) {
  std::vector<TraceEvent> events = traces::forward({{0}, {1}, {0}}, 2).events();
  events[2].non_model_bytes = 85;
  events[3].non_model_bytes = 95;
  make(traces::equal_chunks(2, 10), Trace(events, 2), 100);
  chunks_[0].copy = Copy::gathered;
  EXPECT_EQ(before(2, 10), (Actions{{Kind::release, 0}, {Kind::gather, 1}})) << "its own need may be more";
  events[2].non_model_bytes = 80;
  make(traces::equal_chunks(2, 10), Trace(events, 2), 100);
  chunks_[0].copy = Copy::gathered;
  EXPECT_EQ(before(2, 10), (Actions{{Kind::gather, 1}}));
  chunks_[1].copy = Copy::gathered;
  EXPECT_EQ(after(3), (Actions{{Kind::release, 1}, {Kind::release, 0}})) << "more of it after the operation";
}

TEST_F(AutoPolicyTest, FetchesTheNextOnesInOrderUpToTheDepth) {
  make(traces::equal_chunks(5, 10), traces::forward({{0}, {1}, {0}, {2}, {3}}, 5), -1, 2);
  EXPECT_EQ(before(0, 0), (Actions{{Kind::gather, 0}, {Kind::prefetch, 1}, {Kind::prefetch, 2}}));
  chunks_[0].copy = Copy::gathered;
  chunks_[1].copy = chunks_[2].copy = Copy::arriving;
  EXPECT_EQ(before(2, 30), (Actions{{Kind::prefetch, 3}})) << "chunk 1 is waited for now";
}

TEST_F(AutoPolicyTest, FetchesAheadOnlyWhatHasRoomUntilItsUse) {
  std::vector<TraceEvent> events = traces::forward({{0}, {1}, {2}}, 3).events();
  make(traces::equal_chunks(3, 10), Trace(events, 3), 30, 2);
  EXPECT_EQ(before(0, 0).size(), 3U);
  events[2].non_model_bytes = 15;  // while chunk 1 is in use there is no room for chunk 2
  make(traces::equal_chunks(3, 10), Trace(events, 3), 30, 2);
  EXPECT_EQ(before(0, 0), (Actions{{Kind::gather, 0}, {Kind::prefetch, 1}}));
}

TEST_F(AutoPolicyTest, GivesUpForAPrefetchOnlyWhatIsUsedLater) {
  make(traces::equal_chunks(4, 10), traces::forward({{0}, {1}, {2}, {3}}, 4), 20, 1);
  chunks_[2].copy = Copy::gathered;
  EXPECT_EQ(before(0, 10), (Actions{{Kind::release, 2}, {Kind::gather, 0}, {Kind::prefetch, 1}}));
  make(traces::equal_chunks(4, 10), traces::forward({{0}, {1}, {2}, {3}}, 4), 20, 1);
  chunks_[0].copy = chunks_[3].copy = Copy::gathered;
  EXPECT_EQ(before(0, 20), (Actions{{Kind::release, 3}, {Kind::prefetch, 1}}));
  make(traces::equal_chunks(4, 10), traces::forward({{0}, {1}, {2}, {3}}, 4), 20, 1);
  chunks_[0].copy = chunks_[1].copy = Copy::gathered;
  EXPECT_TRUE(before(0, 20).empty()) << "chunk 1 is used before chunk 2";
}

TEST_F(AutoPolicyTest, WhatHasJustGoneDoesNotComeBackAtOnce) {
  std::vector<ChunkFacts> facts = traces::equal_chunks(3, 10);
  facts[1].slot_bytes = 3;
  facts[2].slot_bytes = 8;
  make(facts, traces::forward({{2}, {1, 0}}, 3), 16, 1);
  chunks_[0].copy = chunks_[1].copy = Copy::gathered;
  EXPECT_EQ(before(0, 13), (Actions{{Kind::release, 1}, {Kind::release, 0}, {Kind::gather, 2}}));
}

}  // namespace
}  // namespace gemini
