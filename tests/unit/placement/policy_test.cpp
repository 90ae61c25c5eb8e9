// The static policy: gather on use, release after.
#include "placement/policy.hpp"

#include <gtest/gtest.h>

namespace gemini {
namespace {

std::vector<int> chunks_of(const std::vector<Action>& actions, Action::Kind kind) {
  std::vector<int> chunks;
  for (const Action& action : actions) {
    EXPECT_EQ(action.kind, kind);
    chunks.push_back(action.chunk);
  }
  return chunks;
}

TEST(StaticPolicy, GathersWhatIsNotHereInTheOrderAsked) {
  const std::vector<ChunkView> needed = {
      {7, false, false, false}, {2, true, true, false}, {5, true, false, true}, {1, false, false, false}};
  EXPECT_EQ(chunks_of(StaticPolicy::before_operation(needed), Action::Kind::gather),
            (std::vector<int>{7, 1}));
  EXPECT_TRUE(StaticPolicy::before_operation({}).empty());
}

TEST(StaticPolicy, ReleasesExactlyWhatIsGatheredUnleasedAndNotResident) {
  for (int bits = 0; bits < 8; ++bits) {
    const ChunkView view{3, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    const bool released = !StaticPolicy::after_operation({view}).empty();
    EXPECT_EQ(released, view.gathered && !view.leased && !view.resident) << bits;
  }
  const std::vector<ChunkView> used = {
      {4, true, false, false}, {9, true, true, false}, {0, true, false, false}};
  EXPECT_EQ(chunks_of(StaticPolicy::after_operation(used), Action::Kind::release), (std::vector<int>{4, 0}));
}

}  // namespace
}  // namespace gemini
