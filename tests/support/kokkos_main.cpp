// The main of GoogleTest programs that run kernels without MPI.
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  Kokkos::InitArguments arguments;
  arguments.disable_warnings = true;
  const Kokkos::ScopeGuard kokkos(arguments);
  return RUN_ALL_TESTS();
}
