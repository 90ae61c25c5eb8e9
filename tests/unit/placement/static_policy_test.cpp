// The static policy: gather on use, release after, a share kept.
#include <gtest/gtest.h>

#include "unit/placement/traces.hpp"

namespace gemini {
namespace {

using Copy = ChunkStatus::Copy;
using Kind = Action::Kind;
using Actions = std::vector<Action>;

ChunkStatus shown(Copy copy, int leases = 0) {
  ChunkStatus status;
  status.copy = copy;
  status.leases = leases;
  return status;
}

Actions before(Policy& policy, const std::vector<int>& needed, const std::vector<ChunkStatus>& chunks,
               std::int64_t in_use = 0, const Moment& moment = {}) {
  Actions actions;
  policy.before({&needed, 0}, moment, chunks, in_use, actions);
  return actions;
}

Actions after(Policy& policy, const std::vector<int>& ended, const std::vector<ChunkStatus>& chunks) {
  Actions actions;
  policy.after(ended, {}, chunks, actions);
  return actions;
}

TEST(StaticPolicy, GathersWhatIsAbsentInTheOrderAsked) {
  const auto facts = traces::equal_chunks(4, 10);
  const auto policy = make_static_policy(facts, {});
  const std::vector<ChunkStatus> chunks = {shown(Copy::absent), shown(Copy::gathered), shown(Copy::absent),
                                           shown(Copy::gathered, 1)};
  EXPECT_EQ(before(*policy, {2, 1, 0}, chunks), (Actions{{Kind::gather, 2}, {Kind::gather, 0}}));
  EXPECT_TRUE(before(*policy, {}, chunks).empty());
}

TEST(StaticPolicy, ReleasesWhatIsNeitherLeasedNorKept) {
  PolicyRules rules;
  rules.keep_share = 0.5;
  const auto facts = traces::equal_chunks(5, 10);
  const auto policy = make_static_policy(facts, rules);  // keeps chunks 0 and 1
  std::vector<ChunkStatus> chunks(5, shown(Copy::gathered));
  chunks[3].leases = 1;
  EXPECT_EQ(after(*policy, {0, 1, 2, 3, 4}, chunks), (Actions{{Kind::release, 2}, {Kind::release, 4}}));
  chunks[0].transient = true;
  EXPECT_EQ(after(*policy, {0}, chunks), (Actions{{Kind::release, 0}}));
}

TEST(StaticPolicy, KeptCopiesGoWhereTheLimitDoesNotHoldTheNeed) {
  PolicyRules rules;
  rules.keep_share = 1;
  rules.budget.limit_bytes = 40;
  const auto facts = traces::equal_chunks(6, 10);
  const auto policy = make_static_policy(facts, rules);
  const std::vector<ChunkStatus> chunks = {shown(Copy::gathered), shown(Copy::gathered),
                                           shown(Copy::gathered), shown(Copy::gathered, 1),
                                           shown(Copy::absent),   shown(Copy::absent)};
  EXPECT_EQ(before(*policy, {4, 2}, chunks, 40), (Actions{{Kind::release, 1}, {Kind::gather, 4}}));
  EXPECT_EQ(before(*policy, {4, 5}, chunks, 40),
            (Actions{{Kind::release, 2}, {Kind::release, 1}, {Kind::gather, 4}, {Kind::gather, 5}}));
}

TEST(StaticPolicy, PrefetchesInOrderWhatFits) {
  PolicyRules rules;
  rules.prefetch = 2;
  rules.budget.limit_bytes = 30;
  const auto facts = traces::equal_chunks(4, 10);
  const auto policy = make_static_policy(facts, rules);
  const Trace trace = traces::forward({{0}, {1}, {2}, {3}}, 4);
  policy->learn(trace);
  std::vector<ChunkStatus> chunks(4);
  EXPECT_EQ(before(*policy, {0}, chunks, 0, {&trace, 0}),
            (Actions{{Kind::gather, 0}, {Kind::prefetch, 1}, {Kind::prefetch, 2}}));
  EXPECT_EQ(before(*policy, {0}, chunks, 10, {&trace, 0}), (Actions{{Kind::gather, 0}, {Kind::prefetch, 1}}));
  EXPECT_EQ(before(*policy, {0}, chunks, 0), (Actions{{Kind::gather, 0}})) << "order not known";
}

}  // namespace
}  // namespace gemini
