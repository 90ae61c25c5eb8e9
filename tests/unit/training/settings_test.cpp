// Options as a step reads them.
#include "training/settings.hpp"

#include <gtest/gtest.h>

namespace gemini {
namespace {

Options with(std::initializer_list<std::pair<const char*, const char*>> settings) {
  Options options;
  for (const auto& [key, value] : settings) options.set(key, value);
  return options;
}

TEST(StepSettings, DefaultsAreAdamW) {
  const StepSettings settings{Options{}};
  EXPECT_EQ(settings.kind, UpdateKind::builtin);
  EXPECT_EQ(settings.optimizer, kernels::Optimizer::adamw);
  EXPECT_EQ(settings.states, 2);
  EXPECT_EQ(settings.hyper.lr, 1e-3);
  EXPECT_EQ(settings.hyper.beta1, 0.9);
  EXPECT_EQ(settings.hyper.beta2, 0.999);
  EXPECT_EQ(settings.hyper.eps, 1e-8);
  EXPECT_EQ(settings.hyper.weight_decay, 0.0);
  EXPECT_EQ(settings.accumulate, 1);
  EXPECT_EQ(settings.max_grad_norm, 0.0);
  EXPECT_FALSE(settings.infinity_norm);
  EXPECT_TRUE(settings.skip_nonfinite);
}

TEST(StepSettings, StatesFollowTheOptimizer) {
  const auto states = [](const char* optimizer, const char* momentum = "0", const char* custom = "0") {
    return StepSettings(with({{"optimizer", optimizer}, {"momentum", momentum}, {"custom_states", custom}}))
        .states;
  };
  EXPECT_EQ(states("sgd"), 0);
  EXPECT_EQ(states("sgd", "0.9"), 1);
  EXPECT_EQ(states("lion"), 1);
  EXPECT_EQ(states("adam"), 2);
  EXPECT_EQ(states("adamw"), 2);
  EXPECT_EQ(states("lamb"), 2);
  EXPECT_EQ(states("none"), 0);
  EXPECT_EQ(states("custom"), 0);
  EXPECT_EQ(states("custom", "0", "2"), 2);
  EXPECT_EQ(states("adamw", "0", "1"), 2);
}

TEST(LossScaleChoice, AutoIsDynamicForF16Alone) {
  EXPECT_FALSE(make_loss_scale(Options{}, false).is_dynamic());
  EXPECT_EQ(make_loss_scale(Options{}, false).value(), 1.0);
  EXPECT_TRUE(make_loss_scale(Options{}, true).is_dynamic());
  EXPECT_EQ(make_loss_scale(Options{}, true).value(), 65536.0);
  EXPECT_FALSE(make_loss_scale(with({{"loss_scale", "off"}}), true).is_dynamic());
  EXPECT_EQ(make_loss_scale(with({{"loss_scale", "off"}}), true).value(), 1.0);
  EXPECT_EQ(make_loss_scale(with({{"loss_scale", "128"}}), true).value(), 128.0);
  EXPECT_FALSE(make_loss_scale(with({{"loss_scale", "128"}}), true).is_dynamic());
  EXPECT_EQ(make_loss_scale(with({{"initial_scale", "32"}}), true).value(), 32.0);
}

}  // namespace
}  // namespace gemini
