// What a benchmark prints: name, value, unit; a row that misses its goal says so.
#pragma once

#include <cstdio>
#include <string>

namespace gemini_bench {

class Table {
 public:
  // prints: one rank does, and its numbers are the verdict.
  explicit Table(bool prints) : prints_(prints) {}

  void row(const std::string& name, double value, const char* unit) { print(name, value, unit, true); }
  void at_least(double goal, const std::string& name, double value, const char* unit) {
    print(name, value, unit, value >= goal);
  }
  void at_most(double goal, const std::string& name, double value, const char* unit) {
    print(name, value, unit, value <= goal);
  }
  [[nodiscard]] bool missed() const { return missed_; }

 private:
  void print(const std::string& name, double value, const char* unit, bool reached) {
    if (!prints_) return;
    missed_ = missed_ || !reached;
    std::printf("%-62s %12.4f %s%s\n", name.c_str(), value, unit, reached ? "" : " BELOW GOAL");
    std::fflush(stdout);
  }

  bool prints_;
  bool missed_ = false;
};

}  // namespace gemini_bench
