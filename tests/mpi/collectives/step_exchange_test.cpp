// Three kinds of words, each combined in its own way, in one round.
#include "collectives/step_exchange.hpp"

#include <algorithm>
#include <random>

#include "world.hpp"

namespace gemini {
namespace {

StepExchange words_of(int rank, std::uint64_t seed) {
  std::mt19937_64 shape(seed);
  StepExchange exchange;
  exchange.maxima.resize(shape() % 5);
  exchange.sums.resize(shape() % 100);
  exchange.unions.resize(seed % 3 == 0 ? 20000 : shape() % 10);
  std::mt19937_64 random(seed * 100 + static_cast<std::uint64_t>(rank));
  for (auto& word : exchange.maxima) word = static_cast<std::int64_t>(random());
  for (auto& word : exchange.sums) word = static_cast<std::int64_t>(random()) >> 8;
  for (auto& word : exchange.unions) word = static_cast<std::int64_t>(random() & random() & random());
  return exchange;
}

TEST(StepExchange, CombinesEachSectionInItsWay) {
  test::Queue queue;
  Communicator comm(MPI_COMM_WORLD);
  const int ranks = test::world_size();
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    StepExchange expected = words_of(0, seed);
    for (int rank = 1; rank < ranks; ++rank) {
      const StepExchange theirs = words_of(rank, seed);
      for (std::size_t i = 0; i < theirs.maxima.size(); ++i)
        expected.maxima[i] = std::max(expected.maxima[i], theirs.maxima[i]);
      for (std::size_t i = 0; i < theirs.sums.size(); ++i) expected.sums[i] += theirs.sums[i];
      for (std::size_t i = 0; i < theirs.unions.size(); ++i) expected.unions[i] |= theirs.unions[i];
    }
    StepExchange mine = words_of(test::world_rank(), seed);
    mine.run(queue, comm.get(), ranks);
    EXPECT_EQ(mine.maxima, expected.maxima) << "seed " << seed;
    EXPECT_EQ(mine.sums, expected.sums) << "seed " << seed;
    EXPECT_EQ(mine.unions, expected.unions) << "seed " << seed;
  }
  comm.free();
}

}  // namespace
}  // namespace gemini
