// Faults on purpose; the entries in CMakeLists.txt expect them to be found.
#include "support/rank_assert.hpp"

namespace {
int my_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
}  // namespace

TEST(Harness, FailsOnRankOne) {
  EXPECT_NE(my_rank(), 1);
}

TEST(Harness, FailsTogether) {
  ASSERT_ALL(MPI_COMM_WORLD, my_rank() != 1);
  MPI_Abort(MPI_COMM_WORLD, 0);  // not reached
}

// Rank 1 leaves, rank 0 waits for it for ever.
TEST(Harness, FailsAlone) {
  ASSERT_NE(my_rank(), 1);
  MPI_Recv(nullptr, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
