// Prints docs/options.md from the table of options.
#include <cstdio>

#include "base/error.hpp"
#include "base/option_table.hpp"

namespace {

const char* scope_name(gemini::OptionScope scope) {
  switch (scope) {
    case gemini::OptionScope::agreed: return "agreed";
    case gemini::OptionScope::rank: return "rank";
    case gemini::OptionScope::step: return "step";
  }
  return "";
}

// Markdown takes <words> for markup.
std::string plain(std::string text) {
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 2))
    text.insert(at, "\\");
  return text;
}

}  // namespace

int main() {
  std::fputs(
      "# Options\n"
      "\n"
      "Given as strings: `gemini_options_set(opts, key, value)`, a file for `gemini_options_load`, or the\n"
      "environment variable `GEMINI_<KEY IN CAPITALS>`, which wins (except over a `backend` that the program "
      "set).\n"
      "Keys `user.*` are stored unchecked for the program. Scope: *agreed* must be equal on all ranks, "
      "*rank* may\n"
      "differ, *step* is agreed and may be changed between steps with `gemini_set_option`.\n"
      "\n"
      "What asks for a part that this version does not have is refused by gemini_create with\n"
      "GEMINI_ERR_UNSUPPORTED and words; what only tunes such a part has no effect yet.\n"
      "\n"
      "This page is printed from the library's own table (src/base/option_table.cpp).\n"
      "\n"
      "| key | default | scope | allowed | meaning |\n"
      "|---|---|---|---|---|\n",
      stdout);
  for (const gemini::OptionSpec& spec : gemini::option_table())
    std::fputs(fmt::format("| `{}` | {} | {} | {} | {} |\n", spec.key,
                           spec.initial.empty() ? "(none)" : spec.initial, scope_name(spec.scope),
                           plain(gemini::allowed_values(spec)), plain(std::string(spec.help)))
                   .c_str(),
               stdout);
}
