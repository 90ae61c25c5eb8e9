// The transition table, written down once more: exactly these moves.
#include "chunks/tensor_state.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace gemini {
namespace {

using S = TensorState;

TEST(TensorState, AllowsExactlyTheseTransitions) {
  const std::set<std::pair<S, S>> allowed = {
      {S::free, S::hold},
      {S::hold, S::compute},
      {S::compute, S::hold},
      {S::compute, S::hold_after_bwd},
      {S::compute, S::ready_for_reduce},
      {S::hold_after_bwd, S::compute},
      {S::hold_after_bwd, S::hold},
      {S::hold_after_bwd, S::ready_for_reduce},
      {S::ready_for_reduce, S::compute},
      {S::ready_for_reduce, S::hold},
  };
  constexpr S kAll[] = {S::free, S::compute, S::hold, S::hold_after_bwd, S::ready_for_reduce};
  static_assert(sizeof kAll / sizeof *kAll == kTensorStates);
  for (const S from : kAll)
    for (const S to : kAll)
      EXPECT_EQ(transition_allowed(from, to), allowed.count({from, to}) == 1)
          << name_of(from) << " to " << name_of(to);
}

TEST(TensorState, HasTheNamesOfTheDesign) {
  EXPECT_STREQ(name_of(S::free), "FREE");
  EXPECT_STREQ(name_of(S::compute), "COMPUTE");
  EXPECT_STREQ(name_of(S::hold), "HOLD");
  EXPECT_STREQ(name_of(S::hold_after_bwd), "HOLD_AFTER_BWD");
  EXPECT_STREQ(name_of(S::ready_for_reduce), "READY_FOR_REDUCE");
}

}  // namespace
}  // namespace gemini
