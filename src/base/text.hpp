// Reading numbers and sizes that people write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gemini::text {

std::string_view trim(std::string_view text);
std::optional<double> parse_real(std::string_view text);  // finite
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<std::int64_t> parse_bytes(std::string_view text);  // 1024, 8GiB, 1.5GB, 512 MiB
std::string format_bytes(std::int64_t bytes);                    // 1.5 GiB

// The names closest to one that was not found, best first: one to three.
std::vector<std::string> nearest(std::string_view name, const std::vector<std::string_view>& names);

}  // namespace gemini::text
