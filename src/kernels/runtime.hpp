// Kokkos, as far as this library starts and watches it.
#pragma once

namespace gemini::kernels {

// Starts Kokkos if nobody did; it is never stopped from here. Throws GEMINI_ERR_STATE if it was stopped.
void start();
[[nodiscard]] bool running();
const char* kokkos_version();

// The level of instructions in force: "baseline" (what the compiler was told to build for), "AVX2", "AVX3"
// (AVX-512).
const char* instruction_level();

// From now on kernels started by this thread run on it: a threaded Kokkos serves one host thread at a time.
void run_inline_on_this_thread();

}  // namespace gemini::kernels
