// Kokkos, as far as this library starts and watches it.
#pragma once

namespace gemini::kernels {

// Starts Kokkos if nobody did; it is never stopped from here. Throws GEMINI_ERR_STATE if it was stopped.
void start();
[[nodiscard]] bool running();
const char* kokkos_version();

}  // namespace gemini::kernels
