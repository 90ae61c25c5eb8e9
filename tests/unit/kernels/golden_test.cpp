// Ten updates of 1000 values against PyTorch's; tests/data/golden/README.md says the settings.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/optimizers.hpp"

namespace gemini::test {
namespace {

using kernels::Hyper;
using kernels::Optimizer;

std::vector<double> golden_values(std::uint64_t k, double scale) {
  std::vector<double> values(1000);
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    const std::uint64_t hash = (i + 1 + k * 7919) * 2654435761u % 4294967296u;
    values[i] = scale * (2.0 * (static_cast<double>(hash) / 4294967296.0) - 1.0);
  }
  return values;
}

std::vector<double> columns(const std::vector<double>& w) {
  long double sum = 0.0, absolute = 0.0;
  for (const double value : w) {
    sum += value;
    absolute += std::fabs(value);
  }
  return {static_cast<double>(sum), static_cast<double>(absolute), w[0], w[499], w[999]};
}

void compare_with_file(const std::string& name, Optimizer optimizer, const Hyper& hyper) {
  std::ifstream file(GEMINI_TEST_DATA "/golden/" + name);
  std::vector<double> w = golden_values(31, 1.0), state1(1000), state2(1000);
  std::string line;
  std::int64_t step = 0;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::int64_t t = 0;
    words >> t;
    ASSERT_EQ(t, ++step);
    const std::vector<double> grad = golden_values(99 + static_cast<std::uint64_t>(t), 0.1);
    kernels::update(
        optimizer, hyper, step,
        {1000, DType::f64, w.data(), grad.data(), 1.0, state1.data(), state2.data(), DType::f64, nullptr});
    for (const double got : columns(w)) {
      double expected = 0.0;
      ASSERT_TRUE(words >> expected);
      EXPECT_NEAR(got, expected, 1e-13 * std::fabs(expected)) << name << " step " << t;
    }
  }
  EXPECT_EQ(step, 10);
}

TEST(Golden, AdamW) {
  compare_with_file("optimizer_adamw_f64.txt", Optimizer::adamw, {1e-3, 0.9, 0.999, 1e-8, 0.01, 0.0, false});
}
TEST(Golden, AdamWithL2) {
  compare_with_file("optimizer_adam_l2_f64.txt", Optimizer::adam, {1e-3, 0.9, 0.999, 1e-8, 0.01, 0.0, false});
}
TEST(Golden, Sgd) {
  compare_with_file("optimizer_sgd_f64.txt", Optimizer::sgd, {0.05, 0.9, 0.999, 1e-8, 1e-4, 0.9, false});
}

}  // namespace
}  // namespace gemini::test
