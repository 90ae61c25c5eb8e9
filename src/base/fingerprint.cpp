#include "base/fingerprint.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gemini {

std::uint64_t fingerprint(const void* bytes, std::int64_t count_bytes, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes, static_cast<std::size_t>(count_bytes), seed);
}

}  // namespace gemini
