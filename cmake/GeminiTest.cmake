# gemini_add_test: the one way a test is registered.
#
#   gemini_add_test(NAME <name> SOURCES <files...> | EXECUTABLE <target of an earlier test>
#                   [RANKS 1 2 3 4] [LABELS ...] [TIMEOUT <s>] [LINK <targets...>] [ARGS ...]
#                   [ENVIRONMENT VAR=value ...] [API] [NO_MAIN])
#
# Without RANKS: one entry <name>. With RANKS: one entry <name>.r<N> for each count, under mpiexec.
# The target is called <name>. Tests see the library's internals; with API they link what a user links.
# GoogleTest and a main are added for C++ sources, unless NO_MAIN is given or a source is called *_main.cpp;
# with RANKS that main is tests/support/mpi_main.cpp.

include(CheckSymbolExists)

set(GEMINI_TEST_MAX_RANKS 4 CACHE STRING "Tests that need more MPI ranks than this are left out")

# Which MPI is this, and does the launcher belong to it?
set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_C)
check_symbol_exists(OPEN_MPI mpi.h GEMINI_MPI_IS_OPEN_MPI)
check_symbol_exists(MPICH_VERSION mpi.h GEMINI_MPI_IS_MPICH)
unset(CMAKE_REQUIRED_LIBRARIES)
execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE _launcher ERROR_VARIABLE _launcher)
if((GEMINI_MPI_IS_OPEN_MPI AND _launcher MATCHES "HYDRA") OR
   (GEMINI_MPI_IS_MPICH AND _launcher MATCHES "OpenRTE|Open MPI|PRRTE"))
  message(FATAL_ERROR "${MPIEXEC_EXECUTABLE} starts programs of another MPI than the one of "
                      "${MPI_C_COMPILER}: set MPI_C_COMPILER and MPIEXEC_EXECUTABLE to the same MPI")
endif()

# What every test runs with.
set(_env OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1)
if(GEMINI_MPI_IS_OPEN_MPI)
  # Allowed as root in containers, more ranks than cores (idle ones yield), and no binding of worker threads to
  # one core.
  list(APPEND _env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
                   OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
                   OMPI_MCA_mpi_yield_when_idle=1)
endif()
if(GEMINI_SANITIZE STREQUAL "address")
  # LeakSanitizer of GCC 12 may crash in the thread-local storage of threads that MPI leaves behind.
  # The fast unwinder stops inside MPI libraries, and then their suppressions do not match.
  list(APPEND _env "ASAN_OPTIONS=fast_unwind_on_malloc=0"
                   "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/sanitizers/lsan.supp:print_suppressions=0:use_tls=0"
                   "UBSAN_OPTIONS=print_stacktrace=1")
elseif(GEMINI_SANITIZE STREQUAL "thread")
  # MPI is not instrumented; UCX's memory hooks (MPICH) do not work under ThreadSanitizer.
  list(APPEND _env "TSAN_OPTIONS=ignore_noninstrumented_modules=1" UCX_MEM_MMAP_HOOK_MODE=none)
endif()
set(GEMINI_TEST_ENVIRONMENT "${_env}" CACHE INTERNAL "Environment of every test")

# _gemini_register(entry command... with labels, timeout, processors of the caller's scope)
function(_gemini_register entry processors)
  set(_dir ${CMAKE_CURRENT_BINARY_DIR}/run/${entry}) # entries may run side by side
  file(MAKE_DIRECTORY ${_dir})
  add_test(NAME ${entry} COMMAND ${ARGN} WORKING_DIRECTORY ${_dir})
  set_tests_properties(${entry} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}"
                       PROCESSORS ${processors} ENVIRONMENT "${GEMINI_TEST_ENVIRONMENT};${arg_ENVIRONMENT}")
endfunction()

function(_gemini_test_executable name)
  add_executable(${name} ${arg_SOURCES})
  gemini_compile_settings(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  if(arg_API)
    target_link_libraries(${name} PRIVATE gemini::gemini)
  else()
    target_link_libraries(${name} PRIVATE gemini_objects)
  endif()
  target_link_libraries(${name} PRIVATE ${arg_LINK})
  if(arg_SOURCES MATCHES "\\.cpp(;|$)")
    target_link_libraries(${name} PRIVATE GTest::gtest)
    if(NOT arg_NO_MAIN AND NOT arg_SOURCES MATCHES "_main\\.cpp(;|$)")
      if(arg_RANKS)
        target_link_libraries(${name} PRIVATE gemini_test_mpi_main)
      else()
        target_link_libraries(${name} PRIVATE GTest::gtest_main)
      endif()
    endif()
  endif()
endfunction()

function(gemini_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "API;NO_MAIN" "NAME;EXECUTABLE;TIMEOUT"
                        "SOURCES;RANKS;LABELS;LINK;ARGS;ENVIRONMENT")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR (NOT arg_SOURCES AND NOT arg_EXECUTABLE))
    message(FATAL_ERROR "gemini_add_test(${ARGV}): needs NAME and SOURCES (or EXECUTABLE); "
                        "not understood: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(GEMINI_SANITIZE)
    math(EXPR arg_TIMEOUT "4 * ${arg_TIMEOUT}")
  endif()
  if(arg_SOURCES)
    _gemini_test_executable(${arg_NAME})
    set(arg_EXECUTABLE ${arg_NAME})
  endif()
  if(NOT arg_RANKS)
    _gemini_register(${arg_NAME} 1 $<TARGET_FILE:${arg_EXECUTABLE}> ${arg_ARGS})
    return()
  endif()
  list(APPEND arg_LABELS mpi)
  foreach(_ranks IN LISTS arg_RANKS)
    if(_ranks LESS_EQUAL GEMINI_TEST_MAX_RANKS)
      _gemini_register(${arg_NAME}.r${_ranks} ${_ranks}
                       ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${_ranks} ${MPIEXEC_PREFLAGS}
                       $<TARGET_FILE:${arg_EXECUTABLE}> ${MPIEXEC_POSTFLAGS} ${arg_ARGS})
    endif()
  endforeach()
endfunction()
