// Messages of one context on stderr, off by default.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace gemini {

enum class LogLevel { off, error, warn, info, debug };

LogLevel parse_log_level(std::string_view name);

class Log {
 public:
  Log() = default;
  Log(LogLevel level, int rank) : level_(level), rank_(rank) {}

  template <class... Args>
  void info(fmt::format_string<Args...> words, Args&&... args) const {
    write(LogLevel::info, "info", fmt::format(words, std::forward<Args>(args)...));
  }
  template <class... Args>
  void warning(fmt::format_string<Args...> words, Args&&... args) const {
    write(LogLevel::warn, "warning", fmt::format(words, std::forward<Args>(args)...));
  }
  void error(std::string_view words) const { write(LogLevel::error, "error", std::string(words)); }

 private:
  void write(LogLevel level, const char* name, const std::string& words) const;

  LogLevel level_ = LogLevel::off;
  int rank_ = 0;
};

}  // namespace gemini
