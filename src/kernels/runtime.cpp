#include "kernels/runtime.hpp"

#include <Kokkos_Core.hpp>
#include <atomic>
#include <mutex>

#include "base/error.hpp"
#include "kernels/launch.hpp"

#define GEMINI_STRING_OF(x) #x
#define GEMINI_STRING(x) GEMINI_STRING_OF(x)

namespace gemini::kernels {
namespace {

std::atomic<bool> seen_running{false};  // by start()

bool was_finalised() {
#if KOKKOS_VERSION >= 30700
  return Kokkos::is_finalized();
#else
  return seen_running && !Kokkos::is_initialized();
#endif
}

void initialise_quietly() {
#if KOKKOS_VERSION >= 30700
  Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
#else
  Kokkos::InitArguments quiet;
  quiet.disable_warnings = true;
  Kokkos::initialize(quiet);
#endif
}

}  // namespace

void start() {
  static std::mutex guard;  // contexts may be made on several threads
  const std::lock_guard lock(guard);
  if (was_finalised()) fail(GEMINI_ERR_STATE, "Kokkos was finalised before; it cannot be started again");
  if (!Kokkos::is_initialized()) initialise_quietly();
  seen_running = true;
}

bool running() {
  return Kokkos::is_initialized();
}

void run_inline_on_this_thread() {
  runs_inline = true;
}

const char* kokkos_version() {
  return GEMINI_STRING(KOKKOS_VERSION);
}

const char* instruction_level() {
  static constexpr const char* (*kOfLevel[])() = {
      HWY_CHOOSE_FALLBACK(level_name), HWY_CHOOSE_TARGET_LIST(level_name), HWY_CHOOSE_FALLBACK(level_name)};
  return kOfLevel[level_index()]();
}

}  // namespace gemini::kernels
