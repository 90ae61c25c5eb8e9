#include "capi/guard.hpp"

#include <new>

#include "kernels/runtime.hpp"

namespace gemini {
namespace {

// Plain memory: a context may be destroyed by a static object, after this thread's objects have ended.
constexpr std::size_t kMessageBytes = 4096;
thread_local char last_message[kMessageBytes] = "";

bool peers_cannot_know(gemini_status_t status) {
  switch (status) {
    case GEMINI_ERR_INTERNAL:
    case GEMINI_ERR_MPI:
    case GEMINI_ERR_DEVICE:
    case GEMINI_ERR_COLLECTIVE:
    case GEMINI_ERR_IO_FATAL: return true;
    default: return false;  // agreed, or each rank finds it by itself
  }
}

}  // namespace

const char* last_error_message() noexcept {
  return last_message;
}

void clear_message() noexcept {
  last_message[0] = '\0';
}

gemini_status_t report_failure(const char* function, gemini_status_t status, const char* words) noexcept {
  try {
    *fmt::format_to_n(last_message, kMessageBytes - 1, "{}: {}", function, words).out = '\0';
  } catch (...) {
    clear_message();
  }
  return status;
}

gemini_status_t status_of_exception(const char* function, NoMemory no_memory) noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return report_failure(function, error.status(), error.what());
  } catch (const std::bad_alloc&) {
    const bool ends = no_memory == NoMemory::ends;
    return report_failure(function, ends ? GEMINI_ERR_DEVICE : GEMINI_ERR_OUT_OF_MEMORY, kNoMemory);
  } catch (const std::exception& error) {
    return report_failure(function, GEMINI_ERR_INTERNAL, error.what());
  } catch (...) {
    return report_failure(function, GEMINI_ERR_INTERNAL, "an unknown exception; a callback must not throw");
  }
}

void check_thread(const gemini_context_s& handle) {
  if (!handle.any_thread && !is_mpi_main_thread())
    fail(GEMINI_ERR_STATE,
         "called from a thread that did not initialise MPI; below MPI_THREAD_MULTIPLE only that thread may");
}

void check_usable(const gemini_context_s* handle) {
  require_argument(handle, "ctx");
  if (!handle->failure.empty())
    fail(GEMINI_ERR_STATE, "the context can only be destroyed, since it failed: {}", handle->failure);
  if (mpi_is_finalised()) fail(GEMINI_ERR_STATE, "MPI was finalised; the context can only be destroyed");
  if (!kernels::running()) fail(GEMINI_ERR_STATE, "Kokkos was finalised; the context can only be destroyed");
  check_thread(*handle);
}

void end_after(gemini_context_s& handle, gemini_status_t status) noexcept {
  if (!handle.failure.empty()) return;
  try {
    handle.failure = last_message[0] == '\0' ? status_name(status) : last_message;
    handle.context->log().error(handle.failure);
  } catch (...) {
    handle.failure = "out of memory";  // short enough to need none
  }
  if (peers_cannot_know(status)) handle.context->ranks().queue().tell_peers(handle.failure);
}

void copy_text(const std::string& text, char* value, std::int64_t capacity) {
  require_argument(value, "value");
  const auto needed = static_cast<std::int64_t>(text.size()) + 1;
  if (capacity < needed)
    fail(GEMINI_ERR_ARGUMENT, "capacity is {}, the value needs {} bytes", capacity, needed);
  std::memcpy(value, text.c_str(), static_cast<std::size_t>(needed));
}

DType checked_dtype(gemini_dtype_t value, const char* name) {
  if (!is_valid(value))
    fail(GEMINI_ERR_ARGUMENT, "{} is {}: allowed are the gemini_dtype_t values 1 to 6", name,
         static_cast<int>(value));
  return static_cast<DType>(value);
}

}  // namespace gemini
