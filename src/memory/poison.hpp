// Debug builds fill released memory with NaN (all bits set, in every floating dtype) and tell
// AddressSanitizer that nobody may touch it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace gemini {

#ifdef GEMINI_DEBUG_MEMORY
inline constexpr bool kDebugMemory = true;
#else
inline constexpr bool kDebugMemory = false;
#endif

inline void unpoison([[maybe_unused]] void* data, [[maybe_unused]] std::int64_t bytes) noexcept {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(data, static_cast<std::size_t>(bytes));
#endif
}

inline void poison(void* data, std::int64_t bytes) noexcept {
  if constexpr (kDebugMemory) std::memset(data, 0xFF, static_cast<std::size_t>(bytes));
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(data, static_cast<std::size_t>(bytes));
#endif
}

}  // namespace gemini
