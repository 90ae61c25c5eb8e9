// Between C and C++: handles, and the one place where exceptions become statuses.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "training/context.hpp"

struct gemini_options_s {
  gemini::Options options;
};

struct gemini_context_s {
  explicit gemini_context_s(std::unique_ptr<gemini::Context> made)
      : context(std::move(made)), any_thread(gemini::mpi_allows_any_thread()) {}
  std::unique_ptr<gemini::Context> context;
  bool any_thread;
  std::string failure;  // words of the negative status that ended it; empty: alive
};

namespace gemini {

// Keeps the words for gemini_last_error_message; function: "gemini_step".
gemini_status_t report_failure(const char* function, gemini_status_t status, const char* words) noexcept;
void clear_message() noexcept;
const char* last_error_message() noexcept;

// What std::bad_alloc means. In a call of this rank alone nothing has happened. In one that all ranks make
// peers may be at their part of it already, so that there is no way back; where ranks first agree, the check
// says for itself that it refuses.
enum class NoMemory { refuses, ends };

// Turns the exception being handled into a status and its words.
gemini_status_t status_of_exception(const char* function, NoMemory no_memory) noexcept;

template <class Body>
gemini_status_t guarded(const char* function, Body&& body, NoMemory no_memory = NoMemory::refuses) noexcept {
  try {
    clear_message();
    body();
    return GEMINI_SUCCESS;
  } catch (...) {
    return status_of_exception(function, no_memory);
  }
}

inline void require_argument(const void* pointer, const char* name) {
  if (pointer == nullptr) fail(GEMINI_ERR_ARGUMENT, "{} is NULL", name);
}

// A dtype of the C API; name: of the argument.
DType checked_dtype(gemini_dtype_t value, const char* name);

void check_thread(const gemini_context_s& handle);
// Throws unless the context may be used now, from this thread.
void check_usable(const gemini_context_s* handle);
// After a negative status nothing goes on; peers are told where they cannot know.
void end_after(gemini_context_s& handle, gemini_status_t status) noexcept;

// guarded() for local calls on a context. body(Context&).
template <class Body>
gemini_status_t with_context(const char* function, gemini_context_t handle, Body&& body,
                             NoMemory no_memory = NoMemory::refuses) noexcept {
  const auto usable = [&] {
    check_usable(handle);
    body(*handle->context);
  };
  const gemini_status_t status = guarded(function, usable, no_memory);
  if (status < 0) end_after(*handle, status);
  return status;
}

// The same for calls that all ranks make, agreed or ordered.
template <class Body>
gemini_status_t with_all_ranks(const char* function, gemini_context_t handle, Body&& body) noexcept {
  return with_context(function, handle, std::forward<Body>(body), NoMemory::ends);
}

// The same for calls on a parameter. body(Context&, Parameter&).
template <class Body>
gemini_status_t with_param(const char* function, gemini_param_t param, Body&& body,
                           NoMemory no_memory = NoMemory::refuses) noexcept {
  if (param == nullptr) return guarded(function, [] { require_argument(nullptr, "param"); });
  const auto on_param = [&](Context& context) { body(context, *param); };
  return with_context(function, param->handle, on_param, no_memory);
}
template <class Body>
gemini_status_t with_param_on_all_ranks(const char* function, gemini_param_t param, Body&& body) noexcept {
  return with_param(function, param, std::forward<Body>(body), NoMemory::ends);
}

// Copies text and a NUL; GEMINI_ERR_ARGUMENT tells the need.
void copy_text(const std::string& text, char* value, std::int64_t capacity);

// Fills the caller's struct of struct_size bytes from ours, so that old programs meet new libraries.
template <class Info>
void check_info(const Info* info) {
  const std::int64_t size = info->struct_size;
  if (size < std::int64_t{8} || size > std::int64_t{1} << 16)
    fail(GEMINI_ERR_ARGUMENT, "struct_size is {}; set it with the _INIT macro", size);
}
template <class Info>
void copy_info(Info filled, Info* info) {
  check_info(info);
  filled.struct_size = info->struct_size;
  const auto known = static_cast<std::int64_t>(sizeof(Info));
  std::memcpy(info, &filled, static_cast<std::size_t>(std::min(info->struct_size, known)));
}

}  // namespace gemini
