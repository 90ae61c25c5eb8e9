// Who starts and stops MPI and Kokkos: one program per story, named by the first argument. Exit code 0 and
// nothing printed, or a line that says what went wrong.
#include <Kokkos_Core.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "gemini.h"

namespace {

[[noreturn]] void broken(const char* what, int line) {
  std::printf("line %d: not so: %s (%s)\n", line, what, gemini_last_error_message());
  std::fflush(stdout);
  std::_Exit(1);
}
#define MUST(condition) \
  if (!(condition)) broken(#condition, __LINE__)

// Trains one step and ends the context.
void train_once(gemini_context_t ctx, gemini_param_t w) {
  MUST(gemini_pre_op(ctx, &w, 1) == GEMINI_SUCCESS);
  MUST(gemini_post_op(ctx, &w, 1) == GEMINI_SUCCESS);
  MUST(gemini_set_phase(ctx, GEMINI_BACKWARD) == GEMINI_SUCCESS);
  MUST(gemini_pre_op(ctx, &w, 1) == GEMINI_SUCCESS);
  auto* grad = static_cast<float*>(gemini_grad(w));
  for (int i = 0; i < 1000; ++i) grad[i] = 1.0F;
  MUST(gemini_post_op(ctx, &w, 1) == GEMINI_SUCCESS);
  MUST(gemini_step(ctx, nullptr) == GEMINI_SUCCESS);
}

gemini_context_t committed(gemini_param_t* w) {
  gemini_context_t ctx = nullptr;
  const int64_t shape = 1000;
  MUST(gemini_create(MPI_COMM_WORLD, nullptr, &ctx) == GEMINI_SUCCESS);
  MUST(gemini_param_register(ctx, "w", GEMINI_F32, 1, &shape, 0, w) == GEMINI_SUCCESS);
  MUST(gemini_param_init_fill(*w, GEMINI_INIT_NORMAL, 0, 1, 1) == GEMINI_SUCCESS);
  MUST(gemini_commit(ctx) == GEMINI_SUCCESS);
  return ctx;
}

void live_once() {
  gemini_param_t w = nullptr;
  gemini_context_t ctx = committed(&w);
  train_once(ctx, w);
  MUST(gemini_destroy(&ctx) == GEMINI_SUCCESS);
  MUST(ctx == nullptr);
}

void host_owns_both(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Kokkos::initialize(argc, argv);
  live_once();
  MUST(Kokkos::is_initialized());
  Kokkos::finalize();
  MPI_Finalize();
}

void library_first(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MUST(!Kokkos::is_initialized());
  live_once();
  MUST(Kokkos::is_initialized());  // the host asks, and shares it
  Kokkos::View<double*> mine("mine", 10);
  mine(9) = 1;
  live_once();  // again in one process
  MUST(mine(9) == 1);
  MPI_Finalize();
}

void kokkos_ends_before_the_context(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Kokkos::initialize(argc, argv);
  gemini_param_t w = nullptr;
  gemini_context_t ctx = committed(&w);
  train_once(ctx, w);
  Kokkos::finalize();
  MUST(gemini_pre_op(ctx, &w, 1) == GEMINI_ERR_STATE);
  MUST(std::strstr(gemini_last_error_message(), "Kokkos was finalised") != nullptr);
  MUST(gemini_step(ctx, nullptr) == GEMINI_ERR_STATE);
  gemini_context_t late = nullptr;
  MUST(gemini_create(MPI_COMM_WORLD, nullptr, &late) == GEMINI_ERR_STATE);
  MUST(late == nullptr);
  MUST(gemini_destroy(&ctx) >= GEMINI_SUCCESS);
  MUST(ctx == nullptr);
  MPI_Finalize();
}

struct Destroy {
  void operator()(gemini_context_t ctx) const {
    if (gemini_destroy(&ctx) != GEMINI_ERR_STATE || ctx != nullptr)
      std::printf("destroyed late: wrong status\n");
    if (std::strstr(gemini_last_error_message(), "gemini_destroy: MPI was finalised") == nullptr)
      std::printf("destroyed late: other words: %s\n", gemini_last_error_message());
  }
};
std::unique_ptr<gemini_context_s, Destroy> held_for_ever;

void static_context_outlives_everything(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Kokkos::initialize(argc, argv);
  gemini_param_t w = nullptr;
  held_for_ever.reset(committed(&w));
  train_once(held_for_ever.get(), w);
  // A message of some length is kept when the program ends.
  MUST(gemini_param_find(held_for_ever.get(), "a name that nobody registered", &w) == GEMINI_ERR_NOT_FOUND);
  Kokkos::finalize();
  MPI_Finalize();
}

void mpi_comes_late_and_leaves_early(int argc, char** argv) {
  gemini_context_t ctx = nullptr;
  MUST(gemini_create(MPI_COMM_WORLD, nullptr, &ctx) == GEMINI_ERR_STATE);
  MUST(ctx == nullptr);
  MUST(std::strstr(gemini_last_error_message(), "gemini_create: MPI is not initialised") != nullptr);
  MUST(gemini_create_f(0, nullptr, &ctx) == GEMINI_ERR_STATE);
  gemini_options_t opts = nullptr;  // needs no MPI
  MUST(gemini_options_create(&opts) == GEMINI_SUCCESS);
  MUST(gemini_options_destroy(&opts) == GEMINI_SUCCESS);
  MPI_Init(&argc, &argv);
  gemini_param_t w = nullptr;
  ctx = committed(&w);
  gemini_context_t open = committed(&w);
  MUST(gemini_pre_op(open, &w, 1) == GEMINI_SUCCESS);  // ends with a lease open
  MPI_Finalize();
  int64_t value = 0;
  MUST(gemini_stat(ctx, GEMINI_STAT_LEASES, &value) == GEMINI_ERR_STATE);
  MUST(gemini_step(ctx, nullptr) == GEMINI_ERR_STATE);
  for (gemini_context_t* each : {&ctx, &open}) {
    MUST(gemini_destroy(each) == GEMINI_ERR_STATE);
    MUST(*each == nullptr);
    MUST(gemini_destroy(each) == GEMINI_SUCCESS);
  }
  MUST(gemini_create(MPI_COMM_WORLD, nullptr, &ctx) == GEMINI_ERR_STATE);
}

void contexts_are_never_destroyed(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  gemini_param_t w = nullptr;
  static gemini_context_t ctx = committed(&w);
  train_once(ctx, w);
  MPI_Finalize();
  std::exit(0);
}

// The library has a thread of its own.
void start_with_threads(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MUST(provided == MPI_THREAD_MULTIPLE);
}

// The library's thread is there until MPI ends, the context until the process does.
void worker_runs_when_mpi_ends(int argc, char** argv) {
  start_with_threads(argc, argv);
  gemini_param_t w = nullptr;
  static gemini_context_t ctx = committed(&w);
  train_once(ctx, w);
  MPI_Finalize();
  std::exit(0);
}

void mpi_never_ends(int argc, char** argv) {
  start_with_threads(argc, argv);
  gemini_param_t w = nullptr;
  static gemini_context_t ctx = committed(&w);
  train_once(ctx, w);
  MUST(gemini_pre_op(ctx, &w, 1) == GEMINI_SUCCESS);  // in the middle of something
  std::exit(0);
}

// Reductions are in flight when MPI ends: the library's thread must be out of MPI by then.
void mpi_ends_in_mid_iteration(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  gemini_context_t ctx = nullptr;
  MUST(gemini_create(MPI_COMM_WORLD, nullptr, &ctx) == GEMINI_SUCCESS);
  gemini_param_t w[8] = {};
  const int64_t shape = 1 << 18;
  for (int i = 0; i < 8; ++i) {
    const std::string name = "w" + std::to_string(i);
    MUST(gemini_param_register(ctx, name.c_str(), GEMINI_F32, 1, &shape, 0, &w[i]) == GEMINI_SUCCESS);
    MUST(gemini_param_init_fill(w[i], GEMINI_INIT_ZEROS, 0, 0, 0) == GEMINI_SUCCESS);
  }
  MUST(gemini_commit(ctx) == GEMINI_SUCCESS);
  MUST(gemini_set_phase(ctx, GEMINI_BACKWARD) == GEMINI_SUCCESS);
  for (gemini_param_t& each : w) {
    MUST(gemini_pre_op(ctx, &each, 1) == GEMINI_SUCCESS);
    MUST(gemini_grad(each) != nullptr);
    MUST(gemini_post_op(ctx, &each, 1) == GEMINI_SUCCESS);
  }
  MPI_Finalize();
  MUST(gemini_destroy(&ctx) == GEMINI_ERR_STATE);
}

}  // namespace

int main(int argc, char** argv) {
  struct Story {
    const char* name;
    void (*tell)(int, char**);
  };
  const Story stories[] = {
      {"host_owns_both", host_owns_both},
      {"library_first", library_first},
      {"kokkos_ends_before_the_context", kokkos_ends_before_the_context},
      {"static_context_outlives_everything", static_context_outlives_everything},
      {"mpi_comes_late_and_leaves_early", mpi_comes_late_and_leaves_early},
      {"contexts_are_never_destroyed", contexts_are_never_destroyed},
      {"worker_runs_when_mpi_ends", worker_runs_when_mpi_ends},
      {"mpi_never_ends", mpi_never_ends},
      {"mpi_ends_in_mid_iteration", mpi_ends_in_mid_iteration},
  };
  for (const Story& story : stories) {
    if (argc < 2 || std::strcmp(argv[1], story.name) != 0) continue;
    story.tell(argc, argv);
    return 0;
  }
  std::printf("no such story\n");
  return 2;
}
