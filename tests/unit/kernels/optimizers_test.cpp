#include "kernels/optimizers.hpp"

#include "pieces.hpp"

namespace gemini::test {
namespace {

// run(types, count, offset) for all of them
template <class Run>
void for_all_pieces(Run run) {
  for (const Types& types : kTypes) {
    for (const std::int64_t count : kSizes) {
      for (const std::int64_t offset : kOffsets) {
        SCOPED_TRACE(testing::Message() << name_of(types.master) << " copy " << name_of(types.copy)
                                        << " count " << count << " offset " << offset);
        run(types, count, offset);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

class Optimizers : public testing::TestWithParam<Case> {};

TEST_P(Optimizers, AgreesWithTheReference) {
  const Case& c = GetParam();
  for_all_pieces([&](const Types& types, std::int64_t count, std::int64_t offset) {
    Arrays a(types, kernels::state_count(c.optimizer, c.hyper.momentum), count, offset);
    Arrays b = a;
    for (const std::int64_t step : {1, 2, 1000}) {
      kernels::update(c.optimizer, c.hyper, step, a.whole(0.7));
      reference::update(c.optimizer, c.hyper, step, b.whole(0.7));
      expect_same(a, b);
    }
  });
}

TEST_P(Optimizers, CutsDoNotMatter) {
  const Case& c = GetParam();
  for (const Types& types : kTypes) {
    const std::int64_t count = 20011;
    Arrays whole(types, kernels::state_count(c.optimizer, c.hyper.momentum), count, 1);
    Arrays parts = whole;
    std::mt19937 engine(7);
    for (std::int64_t step = 1; step <= 3; ++step) {
      kernels::update(c.optimizer, c.hyper, step, whole.whole());
      for (std::int64_t begin = 0; begin < count;) {
        const std::int64_t length = std::min<std::int64_t>(count - begin, 1 + engine() % 3000);
        kernels::update(c.optimizer, c.hyper, step, parts.piece(begin, length));
        begin += length;
      }
    }
    expect_same(whole, parts);
  }
}

TEST_P(Optimizers, FactorOfOneChangesNothing) {
  const Case& c = GetParam();
  const Types types{DType::f32, false, DType::f32};
  Arrays a(types, kernels::state_count(c.optimizer, c.hyper.momentum), 100, 0);
  Arrays b = a;
  kernels::scale(DType::f32, b.grad.data(), 100, 0.25);
  kernels::update(c.optimizer, c.hyper, 2, a.whole(0.25));
  kernels::update(c.optimizer, c.hyper, 2, b.whole(1.0));
  EXPECT_TRUE(same(a.master, b.master));
}

TEST_P(Optimizers, MissingArraysAreRefused) {
  const Case& c = GetParam();
  Arrays a({DType::f32, false, DType::f32}, 0, 4, 0);
  EXPECT_THROW(kernels::update(c.optimizer, c.hyper, 0, a.whole()), Error);
  if (kernels::state_count(c.optimizer, c.hyper.momentum) > 0) {
    EXPECT_THROW(kernels::update(c.optimizer, c.hyper, 1, a.whole()), Error);
  }
  EXPECT_NO_THROW(kernels::update(c.optimizer, c.hyper, 1, a.piece(0, 0)));
}

INSTANTIATE_TEST_SUITE_P(All, Optimizers, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(OptimizerNumbers, StateCounts) {
  EXPECT_EQ(kernels::state_count(Optimizer::adamw, 0.0), 2);
  EXPECT_EQ(kernels::state_count(Optimizer::adam, 0.0), 2);
  EXPECT_EQ(kernels::state_count(Optimizer::lamb, 0.0), 2);
  EXPECT_EQ(kernels::state_count(Optimizer::lion, 0.9), 1);
  EXPECT_EQ(kernels::state_count(Optimizer::sgd, 0.9), 1);
  EXPECT_EQ(kernels::state_count(Optimizer::sgd, 0.0), 0);
}

// One element through some steps with a constant gradient
std::vector<double> trajectory(Optimizer optimizer, const Hyper& hyper, double w, std::vector<double> grads) {
  std::vector<double> values;
  double m = 0.0, v = 0.0;
  for (std::size_t t = 0; t < grads.size(); ++t) {
    kernels::update(optimizer, hyper, static_cast<std::int64_t>(t) + 1,
                    {1, DType::f64, &w, &grads[t], 1.0, &m, &v, DType::f64, nullptr});
    values.push_back(w);
  }
  return values;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], tolerance) << i;
}

// With a constant gradient Adam's corrected moments are g and g^2: each step is lr.
TEST(OptimizerNumbers, AdamClosedForm) {
  const Hyper h{0.1, 0.9, 0.999, 1e-8, 0.0, 0.0, false};
  expect_near(trajectory(Optimizer::adam, h, 1.0, {1, 1, 1}), {0.9, 0.8, 0.7}, 1e-8);
  expect_near(trajectory(Optimizer::adamw, h, 1.0, {1, 1, 1}), {0.9, 0.8, 0.7}, 1e-8);
  const Hyper decayed{0.1, 0.9, 0.999, 1e-8, 0.5, 0.0, false};  // w * 0.95 - 0.1
  expect_near(trajectory(Optimizer::adamw, decayed, 1.0, {1, 1}), {0.85, 0.7075}, 1e-8);
}

TEST(OptimizerNumbers, Sgd) {
  const Hyper plain{0.1, 0, 0, 0, 0.5, 0.0, false};  // g = 1 + 0.5 w
  expect_near(trajectory(Optimizer::sgd, plain, 2.0, {1, 1}), {1.8, 1.61}, 1e-15);
  const Hyper momentum{0.1, 0, 0, 0, 0.0, 0.5, false};  // buffers 1, 1.5, 1.75
  expect_near(trajectory(Optimizer::sgd, momentum, 1.0, {1, 1, 1}), {0.9, 0.75, 0.575}, 1e-15);
  const Hyper nesterov{0.1, 0, 0, 0, 0.0, 0.5, true};  // steps 1.5, 1.75, 1.875
  expect_near(trajectory(Optimizer::sgd, nesterov, 1.0, {1, 1, 1}), {0.85, 0.675, 0.4875}, 1e-15);
}

TEST(OptimizerNumbers, TheFirstSgdBufferIsTheGradient) {
  double w = 1.0, grad = 2.0, buffer = std::nan("");
  kernels::update(Optimizer::sgd, {0.1, 0, 0, 0, 0.0, 0.9, false}, 1,
                  {1, DType::f64, &w, &grad, 1.0, &buffer, nullptr, DType::f64, nullptr});
  EXPECT_EQ(buffer, 2.0);
  EXPECT_EQ(w, 0.8);
}

TEST(OptimizerNumbers, Lion) {
  // beta 0.5 and 0.75, lr 0.1, decay 0.2: w -> 0.98 w - 0.1 sign(c).
  // t=1: c = 0.5*4 > 0, w = 0.98 - 0.1 = 0.88, m = 0.25*4 = 1
  // t=2: c = 0.5*1 - 0.5*1 = 0, w = 0.8624, m = 0.75 - 0.25 = 0.5
  // t=3: c = 0.25 - 1 < 0, w = 0.845152 + 0.1, m = 0.375 - 0.5 = -0.125
  const Hyper h{0.1, 0.5, 0.75, 0, 0.2, 0.0, false};
  expect_near(trajectory(Optimizer::lion, h, 1.0, {4, -1, -2}), {0.88, 0.8624, 0.945152}, 1e-15);
}

TEST(OptimizerNumbers, SixteenBitMastersAreRoundedOnceAtTheStore) {
  // 1 - 2^-9 lies between two bfloat16 values below 1 and would be kept only in float.
  std::uint16_t w = 0x3f80;
  const float grad = 1.0f;
  kernels::update(Optimizer::sgd, {0x1p-10, 0, 0, 0, 0, 0, false}, 1,
                  {1, DType::bf16, &w, &grad, 1.0, nullptr, nullptr, DType::bf16, nullptr});
  EXPECT_EQ(w, 0x3f80);  // 1 - 2^-10 rounds back to 1
  kernels::update(Optimizer::sgd, {0x1p-8, 0, 0, 0, 0, 0, false}, 1,
                  {1, DType::bf16, &w, &grad, 1.0, nullptr, nullptr, DType::bf16, nullptr});
  EXPECT_EQ(w, 0x3f7f);
}

TEST(OptimizerNumbers, SubnormalMomentsAreKept) {
  float w = 0.0f, m = 0x1p-140f, v = 0x1p-140f;
  const float grad = 0.0f;
  kernels::update(Optimizer::adamw, {1e-3, 0.5, 0.5, 1e-8, 0, 0, false}, 5,
                  {1, DType::f32, &w, &grad, 1.0, &m, &v, DType::f32, nullptr});
  EXPECT_EQ(m, 0x1p-141f);
  EXPECT_EQ(v, 0x1p-141f);
}

TEST(OptimizerNumbers, LambIsNotUpdatedHere) {
  Arrays a({DType::f32, false, DType::f32}, 2, 4, 0);
  EXPECT_THROW(kernels::update(Optimizer::lamb, kCases[0].hyper, 1, a.whole()), Error);
}

}  // namespace
}  // namespace gemini::test
