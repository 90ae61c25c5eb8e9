// Chunks over several nodes, played on one: each part arrives once per node, and slots are used again only
// when all ranks of the node have left them.
#include "collectives/nodes_transport.hpp"

#include <random>
#include <thread>

#include "kernels/runtime.hpp"
#include "memory/tier.hpp"
#include "support/rank_assert.hpp"
#include "world.hpp"

namespace gemini {
namespace {

using test::world_rank;
using test::world_size;

constexpr std::int64_t kElems = 1000;  // of a shard
constexpr int kChunks = 5;             // of one size
constexpr int kSlots = 2;              // that are ever open at once

using Firsts = std::vector<int>;  // first rank of the node, by rank

class NodesTransportTest : public testing::TestWithParam<Firsts> {
 protected:
  void SetUp() override {
    if (static_cast<std::size_t>(world_size()) != GetParam().size()) GTEST_SKIP() << "takes 4 ranks";
    kernels::start();
    topology_ = make_topology(world_rank(), GetParam());
    ASSERT_TRUE(NodesTransport::possible(topology_));
    auto mpi = std::make_unique<MpiTransport>(Communicator(MPI_COMM_WORLD), topology_, 700);
    mpi_ = mpi.get();
    transport_ = std::make_unique<NodesTransport>(std::move(mpi), topology_);
    const SharedChunk chunk{8 * kElems * world_size(), 8 * kElems * world_size(), true, true};
    ASSERT_EQ(transport_->share(agreement_, std::vector<SharedChunk>(kChunks, chunk)), "");
    tier_.set_wait(
        [this](const std::function<bool()>& condition) { queue_.wait_until(condition, "a test"); });
  }
  void TearDown() override {
    if (transport_) transport_->free_communicator();
    if (mpi_ != nullptr) mpi_->free_communicators();
    agreement_.free_communicator();
  }
  void maybe_pause() {
    if (random_() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300));
  }
  [[nodiscard]] std::int64_t part_bytes() const {
    return 8 * kElems * world_size() / transport_->ranks_per_slot();
  }
  std::byte* open(int chunk) { return tier_.take_slot(part_bytes(), "a test", transport_->open_slot(chunk)); }
  void close(int chunk, std::byte* slot) {
    transport_->leave(chunk);
    tier_.give_slot(slot, part_bytes(), transport_->close_slot(chunk));
  }
  static double value(int round, int rank, std::int64_t i) {
    return round * 1e5 + rank * 1e4 + static_cast<double>(i % 1000);
  }
  static bool holds(const std::byte* slot, int round) {
    const auto* values = reinterpret_cast<const double*>(slot);
    for (int rank = 0; rank < world_size(); ++rank)
      for (std::int64_t i = 0; i < kElems; ++i)
        if (*values++ != value(round, rank, i)) return false;
    return true;
  }

  test::Queue queue_;
  Agreement agreement_{Communicator(MPI_COMM_WORLD), queue_};
  Topology topology_;
  MpiTransport* mpi_ = nullptr;
  std::unique_ptr<NodesTransport> transport_;
  Tier tier_{"device_memory", 1 << 20};
  std::mt19937 random_{static_cast<unsigned>(world_rank())};
};

TEST_P(NodesTransportTest, GathersEachShardOncePerNodeIntoSlotsThatNobodyReads) {
  std::vector<double> shard(kElems);
  std::deque<std::pair<int, std::byte*>> open_slots;
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    const int chunk = round % kChunks;
    for (std::int64_t i = 0; i < kElems; ++i)
      shard[static_cast<std::size_t>(i)] = value(round, world_rank(), i);
    if (open_slots.size() == kSlots) {
      EXPECT_TRUE(holds(open_slots.front().second, round - kSlots)) << "overwritten while it was read";
      maybe_pause();
      close(open_slots.front().first, open_slots.front().second);
      open_slots.pop_front();
    }
    std::byte* slot = open(chunk);
    ShardedChunk here{kElems, DType::f64, reinterpret_cast<std::byte*>(shard.data()), chunk};
    maybe_pause();
    queue_.run(transport_->acquire(here, slot), "a test");
    ASSERT_EQ(transport_->view(here, slot), slot);
    ASSERT_TRUE(holds(slot, round)) << "round " << round;
    open_slots.emplace_back(chunk, slot);
    EXPECT_LE(tier_.held(), kSlots * whole_pages(part_bytes())) << "copies are shared";
  }
  EXPECT_EQ(transport_->wire().gather_bytes, kRounds * 8 * kElems) << "to the other node, once";
  MPI_Barrier(MPI_COMM_WORLD);
}

// A rank that is ahead may not give back memory that another of its node reads.
TEST_P(NodesTransportTest, MemoryOfASlotGoesWhenAllHaveLeftIt) {
  std::vector<double> shard(kElems);
  for (std::int64_t i = 0; i < kElems; ++i) shard[static_cast<std::size_t>(i)] = value(1, world_rank(), i);
  std::byte* slot = open(0);
  queue_.run(transport_->acquire({kElems, DType::f64, reinterpret_cast<std::byte*>(shard.data()), 0}, slot),
             "a test");
  const bool slow = topology_.nodes[static_cast<std::size_t>(topology_.node())].back() == world_rank();
  if (slow) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_TRUE(holds(slot, 1)) << "gone while it was read";
  }
  close(0, slot);
  EXPECT_EQ(tier_.in_use(), 0);
  const Block all = tier_.allocate(1 << 20, "a test");  // needs the room of the idle slot
  EXPECT_EQ(tier_.held(), 1 << 20);
}

// Nor may one that is behind give back what others have filled again.
TEST_P(NodesTransportTest, MemoryOfASlotStaysOnceOthersFillItAgain) {
  std::vector<double> shard(kElems);
  const bool slow = topology_.nodes[static_cast<std::size_t>(topology_.node())].back() == world_rank();
  for (int round = 0; round < 3; ++round) {
    for (std::int64_t i = 0; i < kElems; ++i)
      shard[static_cast<std::size_t>(i)] = value(round, world_rank(), i);
    if (slow && round > 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    { const Block all = tier_.allocate(1 << 20, "a test"); }  // needs the room of the idle slot
    std::byte* slot = open(0);
    queue_.run(transport_->acquire({kElems, DType::f64, reinterpret_cast<std::byte*>(shard.data()), 0}, slot),
               "a test");
    EXPECT_TRUE(holds(slot, round)) << "gone once it was filled";
    close(0, slot);
  }
}

double gradient_value(int round, int rank, std::int64_t i) {
  std::mt19937 random(static_cast<unsigned>(round * 7919 + rank * 100003 + i));
  return random() * (random() % 2 == 0 ? 1.0 : -1e-7);
}

TEST_P(NodesTransportTest, ReductionsGiveTheCanonicalBits) {
  constexpr std::int64_t kCount = 150;
  const std::int64_t all = kCount * world_size();
  std::byte* buffer = transport_->gradient_pages().take(8 * all);
  std::vector<double> sums(kCount);
  for (int round = 0; round < 20; ++round) {
    const auto silent = [round](int rank) { return (round + rank) % 5 == 0; };
    auto* gradient = reinterpret_cast<double*>(buffer);
    for (std::int64_t i = 0; i < all; ++i) gradient[i] = gradient_value(round, world_rank(), i);
    maybe_pause();
    queue_.run(transport_->reduce({kCount, DType::f64, silent(world_rank()) ? nullptr : buffer,
                                   reinterpret_cast<std::byte*>(sums.data()), true, 3.0, true}),
               "a test");
    for (std::int64_t i = 0; i < kCount; ++i) {
      double total = 0;
      for (std::size_t node = 0; node < topology_.nodes.size(); ++node) {
        double sum = 0;
        for (std::size_t r = 0; r < topology_.nodes[node].size(); ++r) {
          const int rank = topology_.nodes[node][r];
          const double there = silent(rank) ? 0.0 : gradient_value(round, rank, world_rank() * kCount + i);
          sum = r == 0 ? there : sum + there;
        }
        total = node == 0 ? sum : total + sum;
      }
      ASSERT_EQ(sums[static_cast<std::size_t>(i)], total / 3) << "round " << round;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(FourRanks, NodesTransportTest,
                         testing::Values(Firsts{0, 0, 2, 2}, Firsts{0, 1, 0, 1}, Firsts{0, 1, 1, 0}));

TEST(NodesTransport, IsForOneGroupOnNodesOfEquallyManyRanks) {
  EXPECT_TRUE(NodesTransport::possible(make_topology(0, {0, 0, 2, 2})));
  EXPECT_FALSE(NodesTransport::possible(make_topology(0, {0, 0, 0, 3}))) << "unequal";
  EXPECT_FALSE(NodesTransport::possible(make_topology(0, {0, 1, 2, 3}))) << "one rank each";
  EXPECT_FALSE(NodesTransport::possible(make_topology(0, {0, 0, 0, 0}))) << "one node";
  Topology groups = make_topology(0, {0, 0, 2, 2});
  cut_into_groups(groups, "2");
  EXPECT_FALSE(NodesTransport::possible(groups));
}

}  // namespace
}  // namespace gemini
