// The dynamic loss scale against a model of the rule, and clipping.
#include "training/loss_scale.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "training/step.hpp"

namespace gemini {
namespace {

constexpr LossScaleRules kRules = {1.0, 1024.0, 2.0, 0.5, 3, 2};

TEST(LossScale, FixedNeverMoves) {
  LossScale scale = LossScale::fixed(8.0);
  for (int i = 0; i < 10; ++i) scale.update(i % 2 == 0, kRules);
  EXPECT_EQ(scale.value(), 8.0);
  EXPECT_FALSE(scale.is_dynamic());
}

TEST(LossScale, FallsWhenTheHysteresisIsUsedUp) {
  LossScale scale = LossScale::dynamic(64.0, 2);
  scale.update(true, kRules);
  EXPECT_EQ(scale.value(), 64.0);
  scale.update(true, kRules);
  EXPECT_EQ(scale.value(), 32.0);
  scale.update(true, kRules);
  EXPECT_EQ(scale.value(), 16.0);
}

TEST(LossScale, CleanStepsDoNotRestoreTheHysteresisBeforeItGrows) {
  LossScale scale = LossScale::dynamic(64.0, 2);
  scale.update(true, kRules);
  scale.update(false, kRules);
  scale.update(false, kRules);
  scale.update(true, kRules);
  EXPECT_EQ(scale.value(), 32.0);
}

TEST(LossScale, GrowsAfterCleanStepsInARowAndStartsTheHysteresisAnew) {
  LossScale scale = LossScale::dynamic(64.0, 2);
  scale.update(true, kRules);
  for (int i = 0; i < 3; ++i) scale.update(false, kRules);
  EXPECT_EQ(scale.value(), 128.0);
  scale.update(true, kRules);
  EXPECT_EQ(scale.value(), 128.0);
  scale.update(true, kRules);
  EXPECT_EQ(scale.value(), 64.0);
}

TEST(LossScale, StaysBetweenItsBounds) {
  LossScale scale = LossScale::dynamic(600.0, 1);
  for (int i = 0; i < 30; ++i) scale.update(false, kRules);
  EXPECT_EQ(scale.value(), 1024.0);
  for (int i = 0; i < 30; ++i) scale.update(true, kRules);
  EXPECT_EQ(scale.value(), 1.0);
}

// The rule of the contract, said from the history alone: what happened since the scale grew last.
double scale_after(const std::vector<bool>& overflows, double scale, const LossScaleRules& rules) {
  std::int64_t clean = 0;
  std::int64_t counter = rules.hysteresis;
  for (const bool overflow : overflows) {
    if (overflow) {
      clean = 0;
      if (counter > 0) --counter;
      if (counter == 0) scale = std::max(rules.minimum, scale * rules.backoff_factor);
    } else {
      ++clean;
    }
    if (clean == rules.growth_interval) {
      scale = std::min(rules.maximum, scale * rules.growth_factor);
      counter = rules.hysteresis;
      clean = 0;
    }
  }
  return scale;
}

TEST(LossScale, FollowsTheRuleOverRandomHistories) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](unsigned below) { return static_cast<std::int64_t>(random() % below); };
    const LossScaleRules rules = {
        0.25,        4096.0,     1.0 + static_cast<double>(draw(4)), 0.125 * static_cast<double>(1 + draw(7)),
        1 + draw(5), 1 + draw(4)};
    LossScale scale = LossScale::dynamic(256.0, rules.hysteresis);
    std::vector<bool> history;
    const auto odds = random() % 4 + 2;
    for (int i = 0; i < 200; ++i) {
      history.push_back(random() % odds == 0);
      scale.update(history.back(), rules);
      ASSERT_EQ(scale.value(), scale_after(history, 256.0, rules)) << "seed " << seed << " step " << i;
      ASSERT_GE(scale.value(), rules.minimum);
      ASSERT_LE(scale.value(), rules.maximum);
    }
  }
}

TEST(ClipFactor, IsTheFormula) {
  EXPECT_EQ(clip_factor(10.0, 1.0), 1.0 / (10.0 + 1e-6));
  EXPECT_EQ(clip_factor(0.5, 1.0), 1.0);
  EXPECT_EQ(clip_factor(1.0, 1.0), 1.0 / (1.0 + 1e-6));
  EXPECT_EQ(clip_factor(0.0, 1.0), 1.0);
}

TEST(ClipFactor, ZeroIsOff) {
  EXPECT_EQ(clip_factor(1e300, 0.0), 1.0);
  EXPECT_EQ(clip_factor(std::numeric_limits<double>::infinity(), 0.0), 1.0);
  EXPECT_EQ(clip_factor(std::nan(""), 0.0), 1.0);
}

TEST(ClipFactor, NeverRaises) {
  for (double norm = 1e-12; norm < 1e12; norm *= 3) {
    EXPECT_LE(clip_factor(norm, 0.1), 1.0);
    EXPECT_LE(norm * clip_factor(norm, 0.1), 0.1);
  }
}

}  // namespace
}  // namespace gemini
