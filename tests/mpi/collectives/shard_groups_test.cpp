// Gathers inside a group, reductions over all of them.
#include <cstring>
#include <random>
#include <vector>

#include "collectives/mpi_transport.hpp"
#include "kernels/runtime.hpp"
#include "support/rank_assert.hpp"
#include "world.hpp"

namespace gemini {
namespace {

using test::world_rank;
using test::world_size;

Topology cut_into(int group_ranks) {
  Topology topology = make_topology(world_rank(), std::vector<int>(static_cast<std::size_t>(world_size())));
  cut_into_groups(topology, std::to_string(group_ranks));
  return topology;
}

std::vector<int> group_sizes() {
  std::vector<int> sizes;
  for (int size = 1; size <= world_size(); ++size)
    if (world_size() % size == 0) sizes.push_back(size);
  return sizes;
}

// Sums of these depend on their order.
float value_of(int rank, std::int64_t i) {
  std::mt19937 random(static_cast<unsigned>(rank * 100003 + i));
  return static_cast<float>(random()) * (random() % 2 == 0 ? 1.0F : -1e-3F);
}

// The canonical order: inside each group, then over groups.
std::vector<float> expected_sum(const Topology& topology, std::int64_t shard_elems, unsigned silent) {
  std::vector<float> sums;
  for (std::int64_t i = 0; i < shard_elems; ++i) {
    float total = 0;
    for (std::size_t g = 0; g < topology.groups.size(); ++g) {
      float sum = 0;
      for (std::size_t r = 0; r < topology.groups[g].size(); ++r) {
        const int rank = topology.groups[g][r];
        const float value =
            (silent >> rank & 1) != 0 ? 0.0F : value_of(rank, topology.group_index * shard_elems + i);
        sum = r == 0 ? value : sum + value;
      }
      total = g == 0 ? sum : total + sum;
    }
    sums.push_back(total / static_cast<float>(world_size()));
  }
  return sums;
}

TEST(ShardGroupTransport, GathersInsideTheGroup) {
  test::Queue queue;
  for (const int size : group_sizes()) {
    MpiTransport transport(Communicator(MPI_COMM_WORLD), cut_into(size), 7);
    EXPECT_EQ(transport.ranks(), size);
    EXPECT_EQ(transport.needs_slot(), size > 1);
    std::vector<double> shard(20, world_rank());
    std::vector<double> slot(static_cast<std::size_t>(20 * size), -1);
    const ShardedChunk chunk{20, DType::f64, reinterpret_cast<std::byte*>(shard.data())};
    std::byte* place = size > 1 ? reinterpret_cast<std::byte*>(slot.data()) : nullptr;
    queue.run(transport.acquire(chunk, place), "a test");
    const auto* seen = reinterpret_cast<const double*>(transport.view(chunk, place));
    bool right = true;
    for (int i = 0; i < 20 * size; ++i) right = right && seen[i] == world_rank() / size * size + i / 20;
    EXPECT_ALL(MPI_COMM_WORLD, right);
    EXPECT_EQ(transport.wire().gather_bytes, 160 * (size - 1));
    transport.free_communicators();
  }
}

TEST(ShardGroupTransport, CountsEachContributionOnceAndAddsInOneOrder) {
  kernels::start();
  test::Queue queue;
  for (const int size : group_sizes())
    for (const std::int64_t limit : {std::int64_t{5}, std::int64_t{INT_MAX}})
      for (unsigned silent = 0; silent < 1u << world_size(); ++silent) {
        const Topology topology = cut_into(size);
        MpiTransport transport(Communicator(MPI_COMM_WORLD), topology, limit);
        constexpr std::int64_t kElems = 33;
        const bool gives = (silent >> world_rank() & 1) == 0;
        std::vector<float> gradient(static_cast<std::size_t>(kElems * size));
        for (std::size_t i = 0; i < gradient.size(); ++i)
          gradient[i] = value_of(world_rank(), static_cast<std::int64_t>(i));
        std::vector<float> sum(kElems, -1);
        queue.run(
            transport.reduce(
                {kElems, DType::f32, gives ? reinterpret_cast<const std::byte*>(gradient.data()) : nullptr,
                 reinterpret_cast<std::byte*>(sum.data()), true, static_cast<double>(world_size())}),
            "a test");
        EXPECT_EQ(sum, expected_sum(topology, kElems, silent)) << "groups of " << size;
        EXPECT_EQ(transport.wire().reduce_bytes,
                  4 * kElems * ((gives ? size - 1 : 0) + world_size() / size - 1));
        transport.free_communicators();
      }
}

}  // namespace
}  // namespace gemini
