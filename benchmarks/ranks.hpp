// Ranks that are measured together: each on a processor of its own, begun by a barrier, timed by the slowest.
#pragma once

#include <mpi.h>
#include <sched.h>

#include <chrono>
#include <cstdio>
#include <vector>

namespace gemini_bench {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

inline int rank_of_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
inline int ranks_of_world() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

// False: MPI does not allow any thread to call it.
inline bool init_mpi(int& argc, char**& argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  return provided == MPI_THREAD_MULTIPLE;
}
// Ends a program that was called wrongly; its status.
inline int refuse(const char* usage) {
  if (rank_of_world() == 0) std::fprintf(stderr, "usage: %s\n", usage);
  MPI_Finalize();
  return 2;
}

// This thread, and those that it starts from now on, stay on one of the processors they may use: rank r on
// the r-th, round and round. One node is assumed.
inline void pin_rank() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &allowed)) processors.push_back(i);
  if (processors.empty()) return;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET(processors[static_cast<std::size_t>(rank_of_world()) % processors.size()], &mine);
  sched_setaffinity(0, sizeof mine, &mine);
}

// Ranks leave together.
inline Clock::time_point meet() {
  MPI_Barrier(MPI_COMM_WORLD);
  return Clock::now();
}

inline double largest(double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return value;
}
inline double sum_over_ranks(double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return value;
}

inline double slowest_s(Clock::time_point start, Clock::time_point end) {
  return largest(Seconds(end - start).count());
}

// Seconds that act() takes on the slowest rank.
template <class Act>
double time_together(Act&& act) {
  const Clock::time_point start = meet();
  act();
  return slowest_s(start, Clock::now());
}

}  // namespace gemini_bench
