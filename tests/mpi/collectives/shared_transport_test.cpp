// Chunks in shared memory: who reads waits for who wrote, and who writes for who reads.
#include "collectives/shared_transport.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <thread>

#include "kernels/reference/reference.hpp"
#include "kernels/runtime.hpp"
#include "memory/page.hpp"
#include "support/rank_assert.hpp"
#include "world.hpp"

namespace gemini {
namespace {

using test::world_rank;
using test::world_size;

constexpr std::int64_t kElems[] = {8, 512, 1000, 70000};  // of the chunks' shards

Topology one_node(int group_ranks) {
  Topology topology = make_topology(world_rank(), std::vector<int>(static_cast<std::size_t>(world_size())));
  cut_into_groups(topology, std::to_string(group_ranks));
  return topology;
}

// Of these ranks: other tests run beside this one.
int segments_with_a_name() {
  std::vector<int> pids(static_cast<std::size_t>(world_size()), getpid());
  MPI_Allgather(MPI_IN_PLACE, 1, MPI_INT, pids.data(), 1, MPI_INT, MPI_COMM_WORLD);
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator("/dev/shm"))
    for (const int pid : pids)
      count += file.path().filename().string().rfind(fmt::format("gemini-{:x}", pid), 0) == 0 ? 1 : 0;
  return count;
}

class SharedTransportTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (world_size() % group_ranks() != 0) GTEST_SKIP() << "ranks do not divide";
    kernels::start();
    topology_ = one_node(group_ranks());
    if (!SharedTransport::possible(topology_)) GTEST_SKIP() << "a rank alone shares nothing";
    auto mpi = std::make_unique<MpiTransport>(Communicator(MPI_COMM_WORLD), topology_);
    mpi_ = mpi.get();
    transport_ = std::make_unique<SharedTransport>(std::move(mpi), topology_);
  }
  void TearDown() override {
    if (mpi_ != nullptr) mpi_->free_communicators();
    agreement_.free_communicator();
  }
  [[nodiscard]] int group_ranks() const { return GetParam() == 0 ? world_size() : GetParam(); }

  std::string share(bool in_memory = true) {
    std::vector<SharedChunk> chunks;
    for (const std::int64_t elems : kElems)
      chunks.push_back({8 * elems * group_ranks(), 8 * elems * group_ranks(), true, in_memory});
    return transport_->share(agreement_, chunks);
  }
  // At random moments, each rank at others.
  void maybe_pause() {
    if (random_() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300));
  }
  void run(std::unique_ptr<Operation> operation) {
    if (operation) queue_.run(std::move(operation), "a test");
  }
  double* shard(int chunk) {
    return reinterpret_cast<double*>(
        transport_->shard_pages(chunk).take(8 * kElems[static_cast<std::size_t>(chunk)]));
  }
  ShardedChunk chunk(int index, double* shard) const {
    return {kElems[static_cast<std::size_t>(index)], DType::f64, reinterpret_cast<std::byte*>(shard), index};
  }
  static double value(int round, int index, int rank, std::int64_t i) {
    return round * 1e6 + index * 1e5 + rank * 1e4 + static_cast<double>(i % 1000);
  }
  void fill(double* shard, int round, int index) const {
    for (std::int64_t i = 0; i < kElems[static_cast<std::size_t>(index)]; ++i)
      shard[i] = value(round, index, topology_.group_index, i);
  }
  bool holds(const std::byte* gathered, int round, int index) const {
    const auto* values = reinterpret_cast<const double*>(gathered);
    for (int rank = 0; rank < group_ranks(); ++rank)
      for (std::int64_t i = 0; i < kElems[static_cast<std::size_t>(index)]; ++i)
        if (*values++ != value(round, index, rank, i)) return false;
    return true;
  }

  test::Queue queue_;
  Agreement agreement_{Communicator(MPI_COMM_WORLD), queue_};
  Topology topology_;
  MpiTransport* mpi_ = nullptr;
  std::unique_ptr<SharedTransport> transport_;
  std::mt19937 random_{static_cast<unsigned>(world_rank())};
};

TEST_P(SharedTransportTest, ReadersSeeTheLastVersionOfEveryShardAndNothingMoves) {
  ASSERT_EQ(share(), "");
  EXPECT_FALSE(transport_->needs_slot());
  std::vector<double*> shards;
  for (int c = 0; c < 4; ++c) shards.push_back(shard(c));
  for (int round = 0; round < 100; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);  // as a step's exchange: nobody reads
    for (int c = 0; c < 4; ++c) {
      maybe_pause();
      fill(shards[static_cast<std::size_t>(c)], round, c);
      transport_->publish(c);
    }
    for (int c = 3; c >= 0; --c) {
      const ShardedChunk here = chunk(c, shards[static_cast<std::size_t>(c)]);
      run(transport_->acquire(here, nullptr));
      ASSERT_TRUE(holds(transport_->view(here, nullptr), round, c)) << "round " << round << " chunk " << c;
      ASSERT_TRUE(transport_->acquire(here, nullptr)->poll()) << "nothing to wait for";
      transport_->leave(c);
    }
  }
  EXPECT_EQ(transport_->wire().gather_bytes, 0);
}

// Sums of which depend on their order.
double gradient_value(int round, int rank, std::int64_t i) {
  std::mt19937 random(static_cast<unsigned>(round * 7919 + rank * 100003 + i));
  return random() * (random() % 2 == 0 ? 1.0 : -1e-7);
}

TEST_P(SharedTransportTest, ReductionsGiveTheCanonicalBitsWhateverRanksAreLate) {
  ASSERT_EQ(share(), "");
  constexpr std::int64_t kCount = 100;
  const auto all = static_cast<std::size_t>(kCount * group_ranks());
  std::vector<std::byte*> buffers;
  for (int b = 0; b < 3; ++b)
    buffers.push_back(transport_->gradient_pages().take(static_cast<std::int64_t>(all) * 8));
  std::vector<std::vector<double>> sums(3, std::vector<double>(kCount));
  std::vector<Ticket> tickets(3, 0);
  constexpr int kRounds = 60;
  for (int round = 0; round < kRounds + 3; ++round) {
    const auto b = static_cast<std::size_t>(round % 3);
    queue_.wait(tickets[b], "a test");  // and only then written again
    if (round >= 3) {
      for (std::int64_t i = 0; i < kCount; ++i) {
        double total = 0;
        for (std::size_t g = 0; g < topology_.groups.size(); ++g) {
          double sum = 0;
          for (std::size_t r = 0; r < topology_.groups[g].size(); ++r) {
            const int rank = topology_.groups[g][r];
            const bool silent = (round - 3 + rank) % 5 == 0;
            const double there =
                silent ? 0.0 : gradient_value(round - 3, rank, topology_.group_index * kCount + i);
            sum = r == 0 ? there : sum + there;
          }
          total = g == 0 ? sum : total + sum;
        }
        ASSERT_EQ(sums[b][static_cast<std::size_t>(i)], total / 3) << "round " << round - 3;
      }
    }
    if (round >= kRounds) continue;
    const bool silent = (round + world_rank()) % 5 == 0;
    auto* gradient = reinterpret_cast<double*>(buffers[b]);
    for (std::size_t i = 0; i < all; ++i)
      gradient[i] = silent ? NAN : gradient_value(round, world_rank(), static_cast<std::int64_t>(i));
    maybe_pause();
    tickets[b] = queue_.submit_background(
        transport_->reduce({kCount, DType::f64, silent ? nullptr : buffers[b],
                            reinterpret_cast<std::byte*>(sums[b].data()), true, 3.0, true}));
  }
}

TEST_P(SharedTransportTest, AShardLeavesItsPlaceWhenNobodyReadsIt) {
  ASSERT_EQ(share(), "");
  double* mine = shard(3);
  fill(mine, 1, 3);
  transport_->publish(3);
  const ShardedChunk here = chunk(3, mine);
  run(transport_->acquire(here, nullptr));
  if (topology_.group_index > 0) std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_TRUE(holds(transport_->view(here, nullptr), 1, 3)) << "gone while it was read";
  transport_->leave(3);
  run(transport_->vacate(3));
  transport_->shard_pages(3).give(reinterpret_cast<std::byte*>(mine), 8 * kElems[3]);
  ASSERT_EQ(shard(3), mine) << "it has one place";
  fill(mine, 2, 3);
  transport_->publish(3);
  run(transport_->acquire(here, nullptr));
  EXPECT_TRUE(holds(transport_->view(here, nullptr), 2, 3));
}

TEST_P(SharedTransportTest, WhatLiesElsewhereGoesOverMpi) {
  ASSERT_EQ(share(false), "");
  std::vector<double> mine(static_cast<std::size_t>(kElems[1]));
  std::vector<double> slot(mine.size() * static_cast<std::size_t>(group_ranks()));
  fill(mine.data(), 5, 1);
  const ShardedChunk here = chunk(1, mine.data());
  auto* place = reinterpret_cast<std::byte*>(slot.data());
  run(transport_->acquire(here, place));
  EXPECT_EQ(transport_->view(here, place), place);
  EXPECT_TRUE(holds(place, 5, 1));
  EXPECT_GT(transport_->wire().gather_bytes, 0);
}

TEST_P(SharedTransportTest, NobodyElseFindsTheSegment) {
  ASSERT_EQ(share(), "");
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(segments_with_a_name(), 0);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_P(SharedTransportTest, IsDeclinedByAllIfOneRankHasNoRoom) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  for (const int odd : {0, world_size() - 1}) {
    const rlimit little{8192, before.rlim_max};
    if (world_rank() == odd) setrlimit(RLIMIT_FSIZE, &little);
    const std::string why = share();
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_NE(why, "");
    EXPECT_TRUE(transport_->declined());
    EXPECT_TRUE(transport_->needs_slot());
    EXPECT_STREQ(transport_->name(), "mpi");
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(segments_with_a_name(), 0);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// Copies, and shards that lie in lower tiers, are to find room when they come.
TEST_P(SharedTransportTest, IsDeclinedWhereWhatComesLaterHasNoRoom) {
  const std::int64_t unit = kPage * group_ranks();
  std::int64_t free = free_shared_memory();
  MPI_Bcast(&free, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  const SharedChunk later{(free / unit + 1) * unit, 8 * unit, true, false};
  EXPECT_NE(transport_->share(agreement_, {later}), "");
  EXPECT_TRUE(transport_->declined());
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(segments_with_a_name(), 0);
  MPI_Barrier(MPI_COMM_WORLD);
}

std::string name_of_groups(const testing::TestParamInfo<int>& info) {
  return info.param == 0 ? "OfAllRanks" : "Of" + std::to_string(info.param);
}
INSTANTIATE_TEST_SUITE_P(Groups, SharedTransportTest, testing::Values(0, 2), name_of_groups);

TEST(SharedTransport, IsForGroupsOnOneNode) {
  const auto possible = [](const std::vector<int>& first_of_node, const char* group) {
    Topology topology = make_topology(0, first_of_node);
    cut_into_groups(topology, group);
    return SharedTransport::possible(topology);
  };
  EXPECT_TRUE(possible({0, 0, 0, 0}, "world"));
  EXPECT_TRUE(possible({0, 0, 2, 2}, "node"));
  EXPECT_TRUE(possible({0, 0, 2, 2}, "2"));
  EXPECT_FALSE(possible({0, 0, 2, 2}, "world"));
  EXPECT_FALSE(possible({0, 1, 0, 1}, "2"));
  EXPECT_FALSE(possible({0, 0}, "1"));
}

}  // namespace
}  // namespace gemini
