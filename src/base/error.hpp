// The one exception type of the library: a status of the C API and the words for it.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "gemini.h"

namespace gemini {

class Error : public std::runtime_error {
 public:
  Error(gemini_status_t status, const std::string& words) : std::runtime_error(words), status_(status) {}
  [[nodiscard]] gemini_status_t status() const noexcept { return status_; }

 private:
  gemini_status_t status_;
};

// fail(GEMINI_ERR_ARGUMENT, "count is {}, must be >= 0", count)
template <class... Args>
[[noreturn]] void fail(gemini_status_t status, fmt::format_string<Args...> words, Args&&... args) {
  throw Error(status, fmt::format(words, std::forward<Args>(args)...));
}

// A promise of the library to itself.
inline void ensure(bool condition, const char* promise) {
  if (!condition) throw Error(GEMINI_ERR_INTERNAL, promise);
}

// The words for std::bad_alloc.
inline constexpr const char* kNoMemory = "the machine does not give more memory";

const char* status_name(gemini_status_t status) noexcept;

}  // namespace gemini
