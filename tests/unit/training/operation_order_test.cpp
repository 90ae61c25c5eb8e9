// The order of operations: followed, left, shortened, lengthened; and what it says of gradient buffers.
#include "training/operation_order.hpp"

#include <gtest/gtest.h>

using namespace gemini;

namespace {

using Kind = TraceEvent::Kind;
using Chunks = std::vector<int>;
constexpr int kChunks = 4;

class Order : public testing::Test {
 protected:
  void begin(const Chunks& chunks, gemini_phase_t phase = GEMINI_FORWARD, std::int64_t memory = 0) {
    order.advance(Kind::begin, phase, chunks, memory);
  }
  void end(const Chunks& chunks, gemini_phase_t phase = GEMINI_FORWARD, std::int64_t memory = 0) {
    order.advance(Kind::end, phase, chunks, memory);
  }
  void forward(const Chunks& chunks) {
    begin(chunks);
    end(chunks);
  }
  // Opens a gradient, and is done with it.
  void backward(int chunk) {
    begin({chunk}, GEMINI_BACKWARD);
    order.opened(chunk);
    end({chunk}, GEMINI_BACKWARD);
    order.closed(chunk);
  }
  // As on one rank: what it saw is what all saw.
  bool learn(std::int64_t memory = 0) { return order.learn(order.seen(memory), kChunks); }
  [[nodiscard]] const TraceEvent& event(int e) const {
    return order.trace().events()[static_cast<std::size_t>(e)];
  }
  [[nodiscard]] bool expects(Kind kind, const Chunks& chunks, gemini_phase_t phase = GEMINI_FORWARD) const {
    return order.look(kind, phase, chunks).trace != nullptr;
  }

  OperationOrder order;
};

TEST_F(Order, IsNotKnownInTheFirstIteration) {
  EXPECT_FALSE(order.known());
  EXPECT_FALSE(expects(Kind::begin, {0}));
  forward({0});
  EXPECT_EQ(order.now().trace, nullptr);
  EXPECT_TRUE(learn());
  EXPECT_TRUE(order.known());
  EXPECT_EQ(order.trace().size(), 2);
  EXPECT_EQ(order.changes(), 0);
}

TEST_F(Order, IsFollowedWhereItComesAgain) {
  forward({0});
  forward({1, 2});
  learn();
  for (int iteration = 0; iteration < 3; ++iteration) {
    EXPECT_TRUE(order.at_start());
    EXPECT_FALSE(expects(Kind::begin, {1}));
    EXPECT_FALSE(expects(Kind::end, {0}));
    EXPECT_FALSE(expects(Kind::begin, {0}, GEMINI_BACKWARD));
    const Moment first = order.look(Kind::begin, GEMINI_FORWARD, {0});
    EXPECT_EQ(first.trace, &order.trace());
    EXPECT_EQ(first.position, 0);
    forward({0});
    EXPECT_EQ(order.now().position, 1);
    EXPECT_EQ(order.look(Kind::begin, GEMINI_FORWARD, {1, 2}).position, 2);
    forward({1, 2});
    EXPECT_FALSE(expects(Kind::begin, {0})) << "past the end";
    EXPECT_FALSE(learn()) << "nothing is new";
  }
  EXPECT_EQ(order.changes(), 0);
}

TEST_F(Order, IsLeftAtTheFirstOperationThatDiffersAndLearntAnew) {
  forward({0});
  forward({1});
  learn();
  forward({0});
  forward({2});
  EXPECT_EQ(order.changes(), 1);
  EXPECT_EQ(order.now().trace, nullptr);
  EXPECT_FALSE(expects(Kind::begin, {1})) << "the rest of this iteration is not looked up";
  EXPECT_TRUE(learn());
  ASSERT_EQ(order.trace().size(), 4);
  EXPECT_EQ(event(0).chunks, Chunks{0});
  EXPECT_EQ(event(2).chunks, Chunks{2});
  forward({0});
  EXPECT_TRUE(expects(Kind::begin, {2}));
}

TEST_F(Order, MayBecomeShorter) {
  forward({0});
  forward({1});
  learn();
  forward({0});
  EXPECT_TRUE(learn());
  EXPECT_EQ(order.changes(), 1);
  EXPECT_EQ(order.trace().size(), 2);
}

TEST_F(Order, MayBecomeLonger) {
  forward({0});
  learn();
  forward({0});
  forward({1});
  EXPECT_EQ(order.changes(), 1);
  EXPECT_TRUE(learn());
  EXPECT_EQ(order.trace().size(), 4);
}

TEST_F(Order, OfAnIterationThatIsDroppedIsForgotten) {
  forward({0});
  learn();
  const std::uint64_t start = order.digest();
  forward({0});
  forward({3});
  EXPECT_NE(order.digest(), start);
  order.restart();
  EXPECT_EQ(order.digest(), start);
  EXPECT_TRUE(order.at_start());
  EXPECT_EQ(order.trace().size(), 2);
  EXPECT_TRUE(expects(Kind::begin, {0}));
}

TEST_F(Order, HasADigestOfKindPhaseAndChunks) {
  const auto digest_of = [](Kind kind, gemini_phase_t phase, const Chunks& chunks) {
    OperationOrder one;
    one.advance(kind, phase, chunks, 0);
    return one.digest();
  };
  const std::uint64_t digest = digest_of(Kind::begin, GEMINI_FORWARD, {1, 2});
  EXPECT_EQ(digest, digest_of(Kind::begin, GEMINI_FORWARD, {1, 2}));
  EXPECT_NE(digest, digest_of(Kind::end, GEMINI_FORWARD, {1, 2}));
  EXPECT_NE(digest, digest_of(Kind::begin, GEMINI_BACKWARD, {1, 2}));
  EXPECT_NE(digest, digest_of(Kind::begin, GEMINI_FORWARD, {2, 1}));
}

TEST_F(Order, KeepsTheMostMemoryUntilTheNextEvent) {
  begin({0}, GEMINI_FORWARD, 7);  // what was before the first is no event's
  order.keep_memory(30);
  end({0}, GEMINI_FORWARD, 20);
  EXPECT_TRUE(learn(40));
  EXPECT_EQ(event(0).non_model_bytes, 30);
  EXPECT_EQ(event(1).non_model_bytes, 40);
  begin({0}, GEMINI_FORWARD, 0);
  end({0}, GEMINI_FORWARD, 10);
  EXPECT_TRUE(learn(40)) << "memory alone is news";
  EXPECT_EQ(event(0).non_model_bytes, 10);
  EXPECT_EQ(order.changes(), 0);
}

TEST_F(Order, TakesWhatTheRanksAgreedOn) {
  forward({0});
  std::vector<std::int64_t> words = order.seen(0);
  ASSERT_EQ(words.size(), 4U) << "memory and time of two events";
  words = {11, 22, 33, 44};
  EXPECT_TRUE(order.learn(words, kChunks));
  EXPECT_EQ(event(0).non_model_bytes, 11);
  EXPECT_EQ(event(1).non_model_bytes, 22);
  EXPECT_EQ(event(0).compute_ns, 33);
  EXPECT_EQ(event(1).compute_ns, 44);
  forward({0});
  ASSERT_EQ(order.seen(0).size(), 2U) << "times are kept while the order is the known one";
}

TEST_F(Order, KnowsWhenGradientsAreOpen) {
  forward({0});
  backward(0);
  learn();
  EXPECT_EQ(event(2).opens, Chunks{0});
  EXPECT_EQ(event(3).closes, Chunks{0});
  EXPECT_TRUE(Trace::well_formed(order.trace().events(), kChunks));
}

// gemini_grad_ready inside the lease.
TEST_F(Order, HoldsABufferThatOpensAndClosesInOneEventUntilTheNext) {
  begin({0}, GEMINI_BACKWARD);
  order.opened(0);
  order.closed(0);
  begin({0}, GEMINI_BACKWARD);
  order.opened(0);
  order.closed(0);
  end({}, GEMINI_BACKWARD);
  end({0}, GEMINI_BACKWARD);
  learn();
  EXPECT_EQ(event(0).opens, Chunks{0});
  EXPECT_EQ(event(1).closes, Chunks{0});
  EXPECT_EQ(event(1).opens, Chunks{0});
  EXPECT_EQ(event(2).closes, Chunks{0});
  EXPECT_TRUE(Trace::well_formed(order.trace().events(), kChunks));
}

// Other tensors of the same chunks: the operations are the known ones, the gradients are not.
TEST_F(Order, FollowsGradientsThatComeAtOtherEventsInTheSameOrder) {
  const auto iteration = [&](bool closes_early) {
    begin({0}, GEMINI_BACKWARD);
    order.opened(0);
    end({0}, GEMINI_BACKWARD);
    if (closes_early) order.closed(0);
    begin({1}, GEMINI_BACKWARD);
    order.opened(1);
    end({1}, GEMINI_BACKWARD);
    if (!closes_early) order.closed(0);
    order.closed(1);
  };
  iteration(true);
  EXPECT_TRUE(learn());
  iteration(true);
  EXPECT_FALSE(learn());
  iteration(false);
  EXPECT_TRUE(learn());
  EXPECT_EQ(order.changes(), 0);
  EXPECT_EQ(event(1).closes, Chunks{});
  EXPECT_EQ(event(3).closes, (Chunks{0, 1}));
  EXPECT_TRUE(Trace::well_formed(order.trace().events(), kChunks));
}

// An inference pass opens nothing and measures nothing.
TEST_F(Order, OfInferenceIsLearntWithoutMeasurements) {
  for (const int chunk : {0, 1, 0}) {
    begin({chunk}, GEMINI_INFERENCE);
    end({chunk}, GEMINI_INFERENCE);
  }
  const std::vector<std::int64_t> unmeasured(order.seen(0).size());
  EXPECT_TRUE(order.learn(unmeasured, kChunks));
  EXPECT_EQ(order.trace().size(), 6);
  EXPECT_EQ(event(0).compute_ns, 0);
}

TEST_F(Order, MayComeFromElsewhere) {
  OperationOrder other;
  other.advance(Kind::begin, GEMINI_FORWARD, {2}, 0);
  other.advance(Kind::end, GEMINI_FORWARD, {2}, 0);
  other.learn(other.seen(0), kChunks);
  order.adopt(other.trace());
  EXPECT_TRUE(expects(Kind::begin, {2}));
  EXPECT_EQ(order.changes(), 0);
}

}  // namespace
