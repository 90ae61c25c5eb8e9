#include "base/log.hpp"

#include <cstdio>

namespace gemini {

LogLevel parse_log_level(std::string_view name) {
  constexpr std::string_view kNames[] = {"off", "error", "warn", "info", "debug"};
  for (int i = 0; i < 5; ++i)
    if (name == kNames[i]) return static_cast<LogLevel>(i);
  return LogLevel::off;
}

void Log::write(LogLevel level, const char* name, const std::string& words) const {
  if (level > level_) return;
  // One call per line, so that lines of several ranks do not mix.
  const std::string line = fmt::format("gemini[{}] {}: {}\n", rank_, name, words);
  std::fputs(line.c_str(), stderr);
}

}  // namespace gemini
