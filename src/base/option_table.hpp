// The one table of options: parsing, messages, gemini_get_option and the documentation come from it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gemini {

enum class OptionScope {
  agreed,  // differing over ranks is an error at create
  rank,    // may differ
  step     // agreed, and may be changed between steps
};

enum class OptionKind { choice, real, integer, bytes, text, collectives };

struct OptionSpec {
  std::string_view key;
  OptionKind kind;
  std::string_view initial;                // the default
  std::vector<std::string_view> keywords;  // allowed besides what the kind allows
  double minimum, maximum;                 // of numbers
  OptionScope scope;
  std::string_view help;  // one line
};

const std::vector<OptionSpec>& option_table();
const OptionSpec* find_option(std::string_view key);
// Throws GEMINI_ERR_ARGUMENT that lists what is allowed.
void check_option_value(const OptionSpec& spec, std::string_view value);
std::string allowed_values(const OptionSpec& spec);

// `delayed:<latency_us>,<gbit_per_s>` of the option collectives.
struct LinkDelay {
  double latency_us, gbit_per_s;
};
std::optional<LinkDelay> parse_link_delay(std::string_view collectives);
// `shared:<ranks>` of the same: the ranks of a node are taken for several nodes of so many.
std::optional<int> parse_node_ranks(std::string_view collectives);

}  // namespace gemini
