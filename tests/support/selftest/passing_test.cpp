#include "support/rank_assert.hpp"

TEST(Harness, AgreesOnSuccess) {
  int rank = 0, ranks = 1, level = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Query_thread(&level);

  ASSERT_ALL(MPI_COMM_WORLD, rank < ranks);
  EXPECT_SAME(MPI_COMM_WORLD, ranks);
  EXPECT_SAME(MPI_COMM_WORLD, level);
}
