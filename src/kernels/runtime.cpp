#include "kernels/runtime.hpp"

#include <Kokkos_Core.hpp>

#include "base/error.hpp"
#include "kernels/launch.hpp"

#define GEMINI_STRING_OF(x) #x
#define GEMINI_STRING(x) GEMINI_STRING_OF(x)

namespace gemini::kernels {

void start() {
#if KOKKOS_VERSION >= 30700
  if (Kokkos::is_finalized())
    fail(GEMINI_ERR_STATE, "Kokkos was finalised before; it cannot be started again");
  if (!Kokkos::is_initialized())
    Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
#else
  if (Kokkos::is_initialized()) return;
  Kokkos::InitArguments quiet;
  quiet.disable_warnings = true;
  Kokkos::initialize(quiet);
#endif
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

}  // namespace gemini::kernels
