// What the machine says this process takes.
#pragma once

#include <fstream>
#include <string>

namespace gemini_bench {

// field: "Rss:" or "Pss:", in which shared pages count by each process's share, of /proc/self/smaps_rollup;
// bytes, 0 if it is not there.
inline double process_bytes(const std::string& field) {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  double kilobytes = 0;
  while (file >> word)
    if (word == field && file >> kilobytes) return 1024 * kilobytes;
  return 0;
}

}  // namespace gemini_bench
