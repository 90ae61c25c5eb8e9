#include "base/options.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <system_error>

#include "base/error.hpp"
#include "base/text.hpp"

namespace gemini {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some editors begin UTF-8 with it

bool is_user_key(std::string_view key) {
  return key.size() > 5 && key.substr(0, 5) == "user.";
}

const OptionSpec& spec_of(std::string_view key) {
  if (const OptionSpec* spec = find_option(key)) return *spec;
  std::vector<std::string_view> names;
  for (const auto& spec : option_table()) names.push_back(spec.key);
  const auto close = text::nearest(key, names);
  fail(GEMINI_ERR_ARGUMENT, "there is no option \"{}\"; did you mean {}?", key, fmt::join(close, " or "));
}

std::string environment_name(std::string_view key) {
  std::string name = "GEMINI_";
  for (const char c : key) name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace

void Options::set(std::string_view key, std::string_view value) {
  if (!is_user_key(key)) check_option_value(spec_of(key), value);
  values_[std::string(key)] = value;
}

void Options::load(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file && (errno == ENOENT || errno == ENOTDIR)) fail(GEMINI_ERR_NOT_FOUND, "{}: no such file", path);
  if (!file) fail(GEMINI_ERR_IO, "{}: {}", path, std::generic_category().message(errno));
  Options changed = *this;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (number == 1 && line.compare(0, kByteOrderMark.size(), kByteOrderMark) == 0)
      line.erase(0, kByteOrderMark.size());
    const std::string_view content = text::trim(std::string_view(line).substr(0, line.find('#')));
    if (content.empty()) continue;
    if (content.find('\0') != std::string_view::npos)
      fail(GEMINI_ERR_ARGUMENT, "{}:{}: a NUL byte; this is no text file", path, number);
    const auto equals = content.find('=');
    if (equals == std::string_view::npos)
      fail(GEMINI_ERR_ARGUMENT, "{}:{}: expected \"key = value\", found \"{}\"", path, number, content);
    try {
      changed.set(text::trim(content.substr(0, equals)), text::trim(content.substr(equals + 1)));
    } catch (const Error& error) {
      fail(error.status(), "{}:{}: {}", path, number, error.what());
    }
  }
  if (file.bad()) fail(GEMINI_ERR_IO, "{}: reading failed", path);
  *this = std::move(changed);
}

void Options::apply_environment() {
  for (const auto& spec : option_table()) {
    if (spec.key == "backend" && is_set(spec.key)) continue;
    const std::string name = environment_name(spec.key);
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) continue;
    try {
      set(spec.key, value);
    } catch (const Error& error) {
      fail(error.status(), "environment variable {}: {}", name, error.what());
    }
  }
}

const std::string& Options::text(std::string_view key) const {
  if (const auto found = values_.find(std::string(key)); found != values_.end()) return found->second;
  if (is_user_key(key)) fail(GEMINI_ERR_NOT_FOUND, "option \"{}\" was not set", key);
  static const std::map<std::string, std::string, std::less<>> defaults = [] {
    std::map<std::string, std::string, std::less<>> all;
    for (const auto& spec : option_table()) all.emplace(spec.key, spec.initial);
    return all;
  }();
  return defaults.find(spec_of(key).key)->second;
}

double Options::real(std::string_view key) const {
  const auto value = text::parse_real(text(key));
  if (!value) fail(GEMINI_ERR_INTERNAL, "option {} is not a number here", key);
  return *value;
}

std::int64_t Options::integer(std::string_view key) const {
  const auto value = text::parse_integer(text(key));
  if (!value) fail(GEMINI_ERR_INTERNAL, "option {} is not an integer here", key);
  return *value;
}

std::int64_t Options::bytes(std::string_view key) const {
  return text::parse_bytes(text(key)).value_or(-1);
}

std::string Options::agreed_text() const {
  std::string lines;
  for (const auto& spec : option_table()) {
    if (spec.scope == OptionScope::rank) continue;
    const auto number = spec.kind == OptionKind::text ? std::nullopt : text::parse_real(text(spec.key));
    lines += number ? fmt::format("{} = {}\n", spec.key, *number)
                    : fmt::format("{} = {}\n", spec.key, text(spec.key));
  }
  return lines;
}

}  // namespace gemini
