// Where micro-batches begin and end, against a model that reads the whole history.
#include "training/micro_batches.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

namespace gemini {
namespace {

// What Operations does with a FORWARD operation.
void forward(MicroBatches& state, std::int64_t accumulate) {
  state.check_forward(accumulate);
  if (state.forward_ends_one()) state.finish_one();
  state.forward();
}

TEST(MicroBatches, StartsInForward) {
  MicroBatches state;
  EXPECT_EQ(state.phase(), GEMINI_FORWARD);
  EXPECT_TRUE(state.idle());
}

TEST(MicroBatches, SettingAPhaseStartsAndEndsNothing) {
  MicroBatches state;
  forward(state, 1);
  state.backward();
  for (const auto phase : {GEMINI_FORWARD, GEMINI_RECOMPUTE, GEMINI_INFERENCE, GEMINI_BACKWARD}) {
    state.set_phase(phase);
    EXPECT_EQ(state.phase(), phase);
    EXPECT_EQ(state.number(), 1);
  }
  EXPECT_NO_THROW(state.check_step(1));
}

TEST(MicroBatches, AForwardAfterABackwardEndsOne) {
  MicroBatches state;
  forward(state, 2);
  forward(state, 2);
  state.backward();
  state.backward();
  EXPECT_EQ(state.number(), 1);
  EXPECT_THROW(state.check_step(2), Error);
  forward(state, 2);
  EXPECT_EQ(state.number(), 2);
  EXPECT_THROW(state.check_step(2), Error) << "the second has no BACKWARD yet";
  state.backward();
  EXPECT_NO_THROW(state.check_step(2));
}

TEST(MicroBatches, OneTooManyIsRefusedAndChangesNothing) {
  MicroBatches state;
  forward(state, 1);
  state.backward();
  EXPECT_THROW(forward(state, 1), Error);
  EXPECT_EQ(state.number(), 1);
  EXPECT_NO_THROW(state.check_step(1));
  state.restart();
  EXPECT_TRUE(state.idle());
  EXPECT_EQ(state.phase(), GEMINI_FORWARD);
  EXPECT_NO_THROW(forward(state, 1));
}

TEST(MicroBatches, AStepNeedsABackward) {
  MicroBatches state;
  EXPECT_THROW(state.check_step(1), Error);
  forward(state, 1);
  EXPECT_THROW(state.check_step(1), Error);
  EXPECT_FALSE(state.idle());
}

// The model: letters since the last step. A micro-batch is F*B+, so they end where B is followed by F.
struct Model {
  std::string letters;

  [[nodiscard]] std::int64_t ended() const {
    std::int64_t count = 0;
    for (std::size_t i = 1; i < letters.size(); ++i) count += letters[i - 1] == 'B' && letters[i] == 'F';
    return count;
  }
  [[nodiscard]] bool in_backward() const { return !letters.empty() && letters.back() == 'B'; }
  [[nodiscard]] bool may_forward(std::int64_t accumulate) const {
    return ended() + (in_backward() ? 1 : 0) < accumulate;
  }
  [[nodiscard]] bool may_step(std::int64_t accumulate) const {
    return letters.find('B') != std::string::npos && ended() + (in_backward() ? 1 : 0) >= accumulate;
  }
};

bool allowed(const std::function<void()>& check) {
  try {
    check();
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), GEMINI_ERR_STATE);
    return false;
  }
}

TEST(MicroBatches, FollowsTheModelOverRandomSequences) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto accumulate = static_cast<std::int64_t>(random() % 3) + 1;
    MicroBatches state;
    Model model;
    std::int64_t number = 1;
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(allowed([&] { state.check_forward(accumulate); }), model.may_forward(accumulate));
      ASSERT_EQ(allowed([&] { state.check_step(accumulate); }), model.may_step(accumulate));
      ASSERT_EQ(state.idle(), model.letters.empty());
      ASSERT_EQ(state.number(), number + model.ended());
      const auto what = random() % 5;
      if (what <= 1 && model.may_forward(accumulate)) {
        forward(state, accumulate);
        model.letters += 'F';
      } else if (what <= 3) {
        state.backward();
        model.letters += 'B';
      } else if (model.may_step(accumulate) || random() % 8 == 0) {
        number += model.ended() + 1;
        state.restart();
        model.letters.clear();
      }
    }
  }
}

}  // namespace
}  // namespace gemini
