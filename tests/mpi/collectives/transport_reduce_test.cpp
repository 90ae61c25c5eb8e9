// Reductions give the bits of one scalar loop in the canonical order, however they travelled.
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "collectives/mpi_transport.hpp"
#include "kernels/reference/reference.hpp"
#include "kernels/runtime.hpp"
#include "support/rank_assert.hpp"
#include "world.hpp"

namespace gemini {
namespace {

using test::world_rank;
using test::world_size;

constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

// Ranks of a node need not be neighbours. The order inside a node shows from three ranks on.
enum class Nodes { interleaved, one, first_and_rest };  // 0 2 | 1 3, 0 1 2 3, 0 2 3 | 1
constexpr Nodes kNodes[] = {Nodes::interleaved, Nodes::one, Nodes::first_and_rest};

Topology topology_of(Nodes nodes) {
  std::vector<int> firsts;
  for (int r = 0; r < world_size(); ++r) {
    const bool second = nodes == Nodes::interleaved ? r % 2 == 1 : nodes == Nodes::first_and_rest && r == 1;
    firsts.push_back(second ? 1 : 0);
  }
  return make_topology(world_rank(), firsts);
}

struct Problem {
  std::int64_t shard_elems;
  DType type;
  bool first = true;
  double divisor = 1;
  unsigned silent = 0;  // ranks whose bit is set contribute nothing
  std::uint64_t seed = 1;

  [[nodiscard]] bool is_silent(int rank) const { return (silent >> rank & 1) != 0; }
};

// Values of which sums depend on their order.
std::vector<std::byte> contribution(const Problem& problem, int rank) {
  std::mt19937_64 random(problem.seed * 1000 + static_cast<std::uint64_t>(rank));
  std::vector<std::byte> values(
      static_cast<std::size_t>(problem.shard_elems * world_size() * size_of(problem.type)));
  for (std::int64_t i = 0; i < problem.shard_elems * world_size(); ++i) {
    const double mantissa =
        static_cast<double>(static_cast<std::int64_t>(random() >> 11)) / 4503599627370496.0 - 1;
    reference::store(problem.type, values.data(), i,
                     std::ldexp(mantissa, static_cast<int>(random() % 14) - 4));
  }
  return values;
}

// The canonical order: ranks within a node, then nodes by their first rank.
template <class W>
std::vector<W> expected_sum(const Problem& problem, const std::vector<std::vector<int>>& nodes) {
  std::vector<std::vector<std::byte>> all;
  for (int rank = 0; rank < world_size(); ++rank) all.push_back(contribution(problem, rank));
  const std::int64_t begin = problem.shard_elems * world_rank();
  std::vector<W> sums;
  for (std::int64_t i = 0; i < problem.shard_elems; ++i) {
    const auto value = [&](int rank) {
      if (problem.is_silent(rank)) return W(0);
      return static_cast<W>(
          reference::load(problem.type, all[static_cast<std::size_t>(rank)].data(), begin + i));
    };
    W total = 0;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      W sum = value(nodes[node][0]);
      for (std::size_t r = 1; r < nodes[node].size(); ++r) sum += value(nodes[node][r]);
      total = node == 0 ? sum : total + sum;
    }
    const W before = problem.first ? W(0) : W(i) / W(3);
    sums.push_back(before + total / static_cast<W>(problem.divisor));
  }
  return sums;
}

template <class W>
std::vector<W> reduced(CommQueue& queue, MpiTransport& transport, const Problem& problem) {
  const auto mine = contribution(problem, world_rank());
  std::vector<W> sum(static_cast<std::size_t>(problem.shard_elems));
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = problem.first ? W(NAN) : W(i) / W(3);
  queue.run(transport.reduce({problem.shard_elems, problem.type,
                              problem.is_silent(world_rank()) ? nullptr : mine.data(),
                              reinterpret_cast<std::byte*>(sum.data()), problem.first, problem.divisor}),
            "a test");
  return sum;
}

template <class W>
bool same_bits(const std::vector<W>& a, const std::vector<W>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(W)) == 0;
}

class MpiReduce : public testing::Test {
 protected:
  MpiReduce() { kernels::start(); }

  void expect_canonical(MpiTransport& transport, const Problem& problem, const std::string& what = {}) {
    const auto nodes = topology_of(nodes_).nodes;
    const bool same =
        problem.type == DType::f64
            ? same_bits(reduced<double>(queue_, transport, problem), expected_sum<double>(problem, nodes))
            : same_bits(reduced<float>(queue_, transport, problem), expected_sum<float>(problem, nodes));
    EXPECT_TRUE(same) << problem.shard_elems << " " << name_of(problem.type) << " silent " << problem.silent
                      << (problem.first ? " first " : " added ") << what;
  }

  test::Queue queue_;
  Nodes nodes_ = Nodes::interleaved;
};

// Case "counts over INT_MAX": with the limit lowered every reduction takes several messages per peer.
TEST_F(MpiReduce, GivesTheCanonicalBitsInPiecesOfAnySize) {
  constexpr std::int64_t kLimits[] = {1, 7, 1000, INT_MAX};
  for (std::size_t i = 0; i < 4; ++i) {
    const std::int64_t limit = kLimits[i];
    nodes_ = kNodes[i % 3];
    MpiTransport transport(Communicator(MPI_COMM_WORLD), topology_of(nodes_), limit);
    for (const DType type : kTypes)
      for (const std::int64_t elems : {1, 7, 8, 33, 2001}) {
        if (elems / limit > 400) continue;
        expect_canonical(transport, {elems, type}, "limit " + std::to_string(limit));
        expect_canonical(transport, {elems, type, false, static_cast<double>(world_size())});
      }
    transport.free_communicators();
  }
}

TEST_F(MpiReduce, WhoContributesNothingContributesZeros) {
  MpiTransport transport(Communicator(MPI_COMM_WORLD), topology_of(nodes_), 10);
  for (unsigned silent = 0; silent < 1u << world_size(); ++silent)
    for (const DType type : kTypes)
      for (const bool first : {true, false}) expect_canonical(transport, {29, type, first, 3, silent});
  transport.free_communicators();
}

TEST_F(MpiReduce, LargerThanWhatItReceivesAtATime) {
  MpiTransport transport(Communicator(MPI_COMM_WORLD), topology_of(nodes_));
  expect_canonical(transport, {MpiTransport::kStagingBytes / 8 / world_size() + 1001, DType::f64, false, 7});
  expect_canonical(transport, {40000, DType::bf16});
  transport.free_communicators();
}

TEST_F(MpiReduce, RandomProblems) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 60; ++i) {
    nodes_ = kNodes[i % 3];
    MpiTransport transport(Communicator(MPI_COMM_WORLD), topology_of(nodes_),
                           static_cast<std::int64_t>(random() % 50) + 1);
    expect_canonical(transport, {static_cast<std::int64_t>(random() % 300) + 1, kTypes[random() % 4],
                                 random() % 2 == 0, static_cast<double>(random() % 5) + 1,
                                 static_cast<unsigned>(random() & random()), random()});
    transport.free_communicators();
  }
}

// The values do tell one order from another.
TEST_F(MpiReduce, TheOrderMatters) {
  if (world_size() < 4) return;
  const Problem problem{500, DType::f32};
  EXPECT_FALSE(same_bits(expected_sum<float>(problem, {{0, 2}, {1, 3}}),
                         expected_sum<float>(problem, {{0, 1, 2, 3}})));
  EXPECT_FALSE(same_bits(expected_sum<float>(problem, {{0, 2}, {1, 3}}),
                         expected_sum<float>(problem, {{0, 1}, {2, 3}})));
}

// In 16 bits the sum would overflow; the mean is representable.
TEST_F(MpiReduce, SixteenBitGradientsAreAddedInF32) {
  MpiTransport transport(Communicator(MPI_COMM_WORLD), topology_of(nodes_));
  const std::vector<std::uint16_t> gradient(static_cast<std::size_t>(3 * world_size()),
                                            0x7BFF);  // 65504 in half
  std::vector<float> sum(3);
  queue_.run(
      transport.reduce({3, DType::f16, reinterpret_cast<const std::byte*>(gradient.data()),
                        reinterpret_cast<std::byte*>(sum.data()), true, static_cast<double>(world_size())}),
      "a test");
  EXPECT_EQ(sum, (std::vector<float>{65504.0F, 65504.0F, 65504.0F}));
  transport.free_communicators();
}

TEST_F(MpiReduce, CountsWhatItSends) {
  MpiTransport transport(Communicator(MPI_COMM_WORLD), topology_of(nodes_));
  (void)reduced<float>(queue_, transport, {100, DType::f32});
  EXPECT_EQ(transport.wire().reduce_bytes, 400 * (world_size() - 1));
  (void)reduced<float>(queue_, transport, {100, DType::f32, true, 1, ~0u});
  EXPECT_EQ(transport.wire().reduce_bytes, 400 * (world_size() - 1)) << "zeros do not travel";
  transport.free_communicators();
}

TEST_F(MpiReduce, OneRankAloneDoesTheSame) {
  if (world_size() > 1) return;
  const auto transport = make_self_transport();
  for (const DType type : kTypes)
    for (const bool first : {true, false})
      for (const unsigned silent : {0u, 1u}) {
        if (type == DType::f64) continue;
        const Problem problem{35, type, first, 3, silent};
        const auto mine = contribution(problem, 0);
        std::vector<float> sum(35);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = first ? NAN : float(i) / 3.0F;
        queue_.run(transport->reduce({35, type, silent ? nullptr : mine.data(),
                                      reinterpret_cast<std::byte*>(sum.data()), first, 3}),
                   "a test");
        EXPECT_TRUE(same_bits(sum, expected_sum<float>(problem, {{0}})));
      }
}

}  // namespace
}  // namespace gemini
