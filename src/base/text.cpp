#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace gemini::text {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr double kKi = 1024.0;
constexpr Unit kUnits[] = {{"", 1},
                           {"B", 1},
                           {"KiB", kKi},
                           {"MiB", kKi* kKi},
                           {"GiB", kKi* kKi* kKi},
                           {"TiB", kKi* kKi* kKi* kKi},
                           {"KB", 1e3},
                           {"MB", 1e6},
                           {"GB", 1e9},
                           {"TB", 1e12}};

// Levenshtein distance by rows.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// Characters of a number at the start of text, 0 if there is none. The locale has no say.
std::size_t read_number(std::string_view text, double& value) {
  const std::size_t sign = !text.empty() && text.front() == '+' ? 1 : 0;
  const auto [end, code] = std::from_chars(text.data() + sign, text.data() + text.size(), value);
  return code == std::errc() ? static_cast<std::size_t>(end - text.data()) : 0;
}

}  // namespace

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::optional<double> parse_real(std::string_view text) {
  const std::string_view number = trim(text);
  double value = 0;
  const std::size_t used = read_number(number, value);
  if (used == 0 || used != number.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  const auto value = parse_real(text);  // "1e6" is welcome; 2^53 bounds what a double holds exactly
  if (!value || *value != std::floor(*value) || std::abs(*value) > 9007199254740992.0) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  const std::string_view trimmed = trim(text);
  double number = 0;
  const std::size_t used = read_number(trimmed, number);
  if (used == 0 || !(number >= 0)) return std::nullopt;
  const std::string_view unit_name = trim(trimmed.substr(used));
  for (const Unit& unit : kUnits) {
    if (unit_name != unit.name) continue;
    const double bytes = number * unit.bytes;
    if (bytes >= 9.2e18) return std::nullopt;
    return static_cast<std::int64_t>(bytes);
  }
  return std::nullopt;
}

std::string format_bytes(std::int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < kKi) break;
    value /= kKi;
    unit = next;
  }
  return fmt::format("{:.4g} {} ({} bytes)", value, unit, bytes);
}

std::vector<std::string> nearest(std::string_view name, const std::vector<std::string_view>& names) {
  std::vector<std::pair<std::size_t, std::string_view>> ranked;
  for (const auto& candidate : names) ranked.emplace_back(distance(name, candidate), candidate);
  std::sort(ranked.begin(), ranked.end());
  // Up to three that look alike; if none does, the nearest all the same.
  const std::size_t alike = std::max<std::size_t>(3, name.size() / 2);
  std::size_t count = std::min<std::size_t>(1, ranked.size());
  while (count < std::min<std::size_t>(3, ranked.size()) && ranked[count].first <= alike) ++count;
  ranked.resize(count);
  std::vector<std::string> best;
  for (const auto& entry : ranked) best.emplace_back(entry.second);
  return best;
}

}  // namespace gemini::text
