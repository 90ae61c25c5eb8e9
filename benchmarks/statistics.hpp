// Medians and quartiles, and pairs of measurements that stand side by side.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "table.hpp"

namespace gemini_bench {

constexpr int kPairs = 31;  // at least: the quartiles of as many are the 8th and the 24th

inline double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}
inline double median(const std::vector<double>& values) {
  return quantile(values, 0.5);
}

inline void print_quartiles(Table& table, const std::string& name, const std::vector<double>& values,
                            const char* unit) {
  table.row(name + ", lower quartile", quantile(values, 0.25), unit);
  table.row(name + ", upper quartile", quantile(values, 0.75), unit);
}

// One and the other in turn, each first in every second pair: what changes slowly changes both.
struct Pairs {
  std::vector<double> ones, others, ratios;  // ratio: one over other, pair by pair

  template <class One, class Other>
  void measure(int pairs, One&& one, Other&& other) {
    for (int i = 0; i < pairs; ++i) {
      double first = 0, second = 0;
      if (i % 2 == 0) first = one();
      second = other();
      if (i % 2 != 0) first = one();
      ones.push_back(first);
      others.push_back(second);
      ratios.push_back(first / second);
    }
  }
};

}  // namespace gemini_bench
