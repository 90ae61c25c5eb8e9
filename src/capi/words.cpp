// Messages and versions.
#include <mpi.h>

#include "capi/guard.hpp"
#include "kernels/runtime.hpp"

using namespace gemini;

const char* gemini_last_error_message(void) {
  return last_error_message();
}

const char* gemini_status_string(gemini_status_t status) {
  return status_name(status);
}

gemini_status_t gemini_version(int32_t* major, int32_t* minor, int32_t* patch) {
  if (major != nullptr) *major = GEMINI_VERSION_MAJOR;
  if (minor != nullptr) *minor = GEMINI_VERSION_MINOR;
  if (patch != nullptr) *patch = GEMINI_VERSION_PATCH;
  return GEMINI_SUCCESS;
}

const char* gemini_build_info(void) {
  static const std::string info = [] {
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(mpi, &length);
    const std::string_view first_line =
        std::string_view(mpi).substr(0, std::string_view(mpi).find_first_of(",\n"));
    return fmt::format("libgemini {}.{}.{}, C++ compiler {}, MPI {}, Kokkos {}, CUDA off, NCCL off, HDF5 off",
                       GEMINI_VERSION_MAJOR, GEMINI_VERSION_MINOR, GEMINI_VERSION_PATCH, __VERSION__,
                       first_line, kernels::kokkos_version());
  }();
  return info.c_str();
}
