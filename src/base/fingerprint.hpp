// A 64-bit digest, to compare over ranks what must be equal there.
#pragma once

#include <cstdint>
#include <string_view>

namespace gemini {

std::uint64_t fingerprint(const void* bytes, std::int64_t count_bytes, std::uint64_t seed = 0) noexcept;
inline std::uint64_t fingerprint(std::string_view text, std::uint64_t seed = 0) noexcept {
  return fingerprint(text.data(), static_cast<std::int64_t>(text.size()), seed);
}

}  // namespace gemini
