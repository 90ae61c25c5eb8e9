// A set of option values over the table's defaults.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/option_table.hpp"

namespace gemini {

class Options {
 public:
  void set(std::string_view key, std::string_view value);
  // Lines "key = value", # comments; all or nothing.
  void load(const std::string& path);
  // GEMINI_<KEY IN CAPITALS> wins over what was set, except for a backend that the program chose.
  void apply_environment();

  [[nodiscard]] bool is_set(std::string_view key) const { return values_.count(std::string(key)) != 0; }
  [[nodiscard]] const std::string& text(std::string_view key) const;
  [[nodiscard]] double real(std::string_view key) const;
  [[nodiscard]] std::int64_t integer(std::string_view key) const;
  [[nodiscard]] bool flag(std::string_view key) const { return text(key) == "on"; }
  [[nodiscard]] std::int64_t bytes(std::string_view key) const;  // -1: auto

  // One line "key = value" per option of scope agreed or step, numbers normalised: equal texts, equal runs.
  [[nodiscard]] std::string agreed_text() const;

 private:
  std::map<std::string, std::string> values_;  // what was set, user.* keys too
};

}  // namespace gemini
