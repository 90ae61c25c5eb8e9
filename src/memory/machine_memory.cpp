#include "memory/machine_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string_view>

namespace gemini {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

// A file with one number. Version 2 writes "max" where there is no limit, version 1 a huge number.
std::int64_t limit_in(const std::string& file) {
  std::int64_t bytes = 0;
  return std::ifstream(file) >> bytes ? bytes : kNone;
}

// Of a group and all above it. In a container the path may be the machine's, which is not seen there; the
// mount's own root then is the container's group.
std::int64_t least_limit(const std::string& mount, std::string group, const char* file) {
  std::int64_t least = kNone;
  for (;;) {
    least = std::min(least, limit_in(mount + group + "/" + file));
    const auto slash = group.rfind('/');
    if (slash == std::string::npos) return least;
    group.erase(slash);
  }
}

}  // namespace

// Lines are <number>:<controllers>:<path>; version 2 has number 0 and no controllers.
std::int64_t machine_memory(const std::string& root) {
  std::int64_t bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const std::string groups = root + "/sys/fs/cgroup";
  std::ifstream lines(root + "/proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) bytes = std::min(bytes, least_limit(groups, group, "memory.max"));
    if (controllers == "memory")
      bytes = std::min(bytes, least_limit(groups + "/memory", group, "memory.limit_in_bytes"));
  }
  return bytes;
}

}  // namespace gemini
