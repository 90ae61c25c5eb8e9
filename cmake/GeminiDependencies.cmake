# Everything libgemini is built on. Each is packaged by Debian and Spack; docs/dependencies.md says why.

find_package(Threads REQUIRED)

set(MPI_CXX_SKIP_MPICXX ON) # the C bindings alone are used
find_package(MPI REQUIRED COMPONENTS C)

# Formatting of messages, header-only so that no dependency is added to the binary.
find_package(fmt REQUIRED)

# Fingerprints compared over ranks: header-only use of xxHash.
find_path(GEMINI_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)

# Learnt traces and timelines as JSON; header-only.
find_package(nlohmann_json 3.9 REQUIRED)

# Vector loops for the processor at hand, chosen at run time.
find_package(hwy REQUIRED CONFIG)

# Files as a memory tier: many requests under way at once. Without it a thread reads and writes.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(GEMINI_LIBURING QUIET IMPORTED_TARGET liburing>=2.0)
endif()
if(GEMINI_LIBURING_FOUND)
  message(STATUS "Found liburing: ${GEMINI_LIBURING_VERSION}")
else()
  message(STATUS "No liburing (or no pkg-config to find it): the file tier reads and writes by a thread")
endif()

# KokkosConfig insists on this in the project that finds it.
set(CMAKE_CXX_EXTENSIONS OFF)
find_package(Kokkos REQUIRED CONFIG)
# Debian's package of 3.4 exports a prefix that does not exist; point it at the headers it did find.
get_target_property(_kokkos_include Kokkos::kokkos INTERFACE_INCLUDE_DIRECTORIES)
if(_kokkos_include AND NOT EXISTS "${_kokkos_include}/Kokkos_Core.hpp" AND Kokkos_INCLUDE_DIRS)
  get_filename_component(_kokkos_include "${Kokkos_INCLUDE_DIRS}" REALPATH)
  if(EXISTS "${_kokkos_include}/Kokkos_Core.hpp")
    set_target_properties(Kokkos::kokkos PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_kokkos_include}")
  endif()
endif()
