// What a benchmark prints: name, value, unit; a row that misses its goal says so. Rows also go, as lines of
// JSON, to the end of the file that GEMINI_BENCHMARK_ROWS names, under the name in GEMINI_BENCHMARK.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace gemini_bench {

class Table {
 public:
  // prints: one rank does.
  explicit Table(bool prints) : prints_(prints) {}

  void row(const std::string& name, double value, const char* unit) { print(name, value, unit, "", 0, true); }
  void at_least(double goal, const std::string& name, double value, const char* unit) {
    print(name, value, unit, "at least", goal, value >= goal);
  }
  void at_most(double goal, const std::string& name, double value, const char* unit) {
    print(name, value, unit, "at most", goal, value <= goal);
  }

 private:
  void print(const std::string& name, double value, const char* unit, const char* bound, double goal,
             bool reached) {
    if (!prints_) return;
    const bool small = value != 0 && std::fabs(value) < 1e-3;
    std::printf(small ? "%-72s %12.3e %s%s\n" : "%-72s %12.4f %s%s\n", name.c_str(), value, unit,
                reached ? "" : " BELOW GOAL");
    std::fflush(stdout);
    write(name, value, unit, bound, goal, reached);
  }

  static void write(const std::string& name, double value, const char* unit, const char* bound, double goal,
                    bool reached) {
    const char* path = std::getenv("GEMINI_BENCHMARK_ROWS");
    const char* benchmark = std::getenv("GEMINI_BENCHMARK");
    std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "a");
    if (file == nullptr) return;
    std::fprintf(file, R"({"benchmark": "%s", "name": "%s", "value": %.9g, "unit": "%s")",
                 benchmark == nullptr ? "" : benchmark, name.c_str(), value, unit);
    if (*bound != 0)
      std::fprintf(file, R"(, "goal": "%s %g", "reached": %s)", bound, goal, reached ? "true" : "false");
    std::fprintf(file, "}\n");
    std::fclose(file);
  }

  bool prints_;
};

}  // namespace gemini_bench
