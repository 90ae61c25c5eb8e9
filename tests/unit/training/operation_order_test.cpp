// The recorded order of an iteration, which a later one follows.
#include "training/operation_order.hpp"

#include <gtest/gtest.h>

namespace gemini {
namespace {

using Kind = TraceEvent::Kind;

void learn(OperationOrder& order) {
  const std::vector<std::int64_t> seen = order.seen(0);
  EXPECT_TRUE(order.learn(seen, 2));
  EXPECT_TRUE(Trace::well_formed(order.trace().events(), 2));
}

TEST(OperationOrder, ClosesABufferThatItsOwnOperationClosedBeforeTheNext) {
  OperationOrder order;
  for (int turn = 0; turn < 2; ++turn) {  // the second opens it again
    order.advance(Kind::begin, GEMINI_BACKWARD, {0}, 0);
    order.opened(0);
    order.closed(0);
    order.advance(Kind::end, GEMINI_BACKWARD, {0}, 0);
  }
  learn(order);
  const std::vector<TraceEvent>& events = order.trace().events();
  EXPECT_EQ(events[0].opens, std::vector<int>{0});
  EXPECT_TRUE(events[0].closes.empty());
  EXPECT_EQ(events[1].closes, std::vector<int>{0});
}

TEST(OperationOrder, LeavesToTheStepWhatTheLastOperationClosed) {
  OperationOrder order;
  order.advance(Kind::begin, GEMINI_BACKWARD, {1}, 0);
  order.advance(Kind::begin, GEMINI_BACKWARD, {0}, 0);
  order.advance(Kind::end, GEMINI_BACKWARD, {0, 1}, 0);
  order.restart();
  order.advance(Kind::begin, GEMINI_BACKWARD, {0}, 0);
  order.opened(0);
  order.closed(0);
  order.restart();  // nothing of it is left
  order.advance(Kind::begin, GEMINI_FORWARD, {0}, 0);
  order.advance(Kind::end, GEMINI_FORWARD, {0}, 0);
  learn(order);
  EXPECT_TRUE(order.trace().events()[1].closes.empty());
}

TEST(OperationOrder, ThatWasAdoptedIsFollowedFromTheFirstOperationOn) {
  OperationOrder first;
  first.advance(Kind::begin, GEMINI_FORWARD, {0, 1}, 7);
  first.advance(Kind::end, GEMINI_FORWARD, {0, 1}, 0);
  learn(first);
  OperationOrder later;
  later.adopt(first.trace());
  const Moment moment = later.look(Kind::begin, GEMINI_FORWARD, {0, 1});
  ASSERT_NE(moment.trace, nullptr);
  EXPECT_EQ(moment.position, 0);
  EXPECT_EQ(later.look(Kind::begin, GEMINI_FORWARD, {1}).trace, nullptr);
}

}  // namespace
}  // namespace gemini
