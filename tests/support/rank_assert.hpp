// Assertions that ranks decide together: every rank calls them, the outcomes are exchanged first, and then
// all ranks fail at the same line and name the ranks that did. So no rank waits for one that has left.
//
//   ALL_RANKS_OK(gemini_commit(ctx));                       // ASSERT: GEMINI_SUCCESS on every rank
//   ALL_RANKS_STATUS(GEMINI_ERR_STATE, gemini_step(ctx, nullptr));
//   ASSERT_ALL(comm, condition);   EXPECT_ALL(comm, condition);
//   EXPECT_SAME(comm, value);                               // bitwise equal on all ranks
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <vector>

#include "gemini.h"

namespace gemini_test {

// Collective over comm. `words` is what this rank has to say if it is not ok.
inline ::testing::AssertionResult all_ranks(MPI_Comm comm, bool ok, const std::string& words) {
  int rank = 0, ranks = 1, mine = ok ? 0 : 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  std::vector<int> failed(static_cast<std::size_t>(ranks));
  MPI_Allgather(&mine, 1, MPI_INT, failed.data(), 1, MPI_INT, comm);
  std::string who;
  for (int r = 0; r < ranks; ++r) {
    if (failed[static_cast<std::size_t>(r)] != 0) who += " " + std::to_string(r);
  }
  if (who.empty()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << (ok ? "fine on rank " : "failed on rank ") << rank << (ok ? "" : ": " + words)
         << "; failed on rank" << who << " of " << ranks;
}

inline ::testing::AssertionResult all_ranks_status(gemini_status_t expected, gemini_status_t actual) {
  return all_ranks(MPI_COMM_WORLD, actual == expected,
                   std::string(gemini_status_string(actual)) + " instead of " +
                       gemini_status_string(expected) + ": " + gemini_last_error_message());
}

// Collective over comm.
template <class T>
::testing::AssertionResult same_on_all(MPI_Comm comm, const T& value) {
  static_assert(std::is_arithmetic<T>::value, "compared as one number");
  T root = value;
  MPI_Bcast(&root, static_cast<int>(sizeof root), MPI_BYTE, 0, comm);
  return all_ranks(comm, root == value || (root != root && value != value),
                   std::to_string(value) + " instead of " + std::to_string(root) + " as on rank 0");
}

}  // namespace gemini_test

#define ASSERT_ALL(comm, condition) ASSERT_TRUE(::gemini_test::all_ranks(comm, (condition), #condition))
#define EXPECT_ALL(comm, condition) EXPECT_TRUE(::gemini_test::all_ranks(comm, (condition), #condition))
#define ALL_RANKS_STATUS(expected, call) \
  ASSERT_TRUE(::gemini_test::all_ranks_status(expected, call)) << "in " << #call
#define ALL_RANKS_OK(call) ALL_RANKS_STATUS(GEMINI_SUCCESS, call)
#define EXPECT_SAME(comm, value) EXPECT_TRUE(::gemini_test::same_on_all(comm, value)) << "in " << #value
