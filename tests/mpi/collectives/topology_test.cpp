// Who is on which node.
#include "collectives/topology.hpp"

#include "world.hpp"

namespace gemini {
namespace {

using Nodes = std::vector<std::vector<int>>;

TEST(Topology, OneNode) {
  const Topology topology = make_topology(2, {0, 0, 0});
  EXPECT_EQ(topology.rank, 2);
  EXPECT_EQ(topology.ranks, 3);
  EXPECT_EQ(topology.nodes, (Nodes{{0, 1, 2}}));
  EXPECT_EQ(topology.node(), 0);
  EXPECT_EQ(topology.node_ranks(), 3);
}

TEST(Topology, NodesAreNumberedByTheirFirstRank) {
  EXPECT_EQ(make_topology(0, {0, 0, 2, 2}).nodes, (Nodes{{0, 1}, {2, 3}}));
  EXPECT_EQ(make_topology(0, {0, 1, 0, 1}).nodes, (Nodes{{0, 2}, {1, 3}}));
  EXPECT_EQ(make_topology(0, {0, 1, 1, 0, 4, 1}).nodes, (Nodes{{0, 3}, {1, 2, 5}, {4}}));
  EXPECT_EQ(make_topology(0, {0, 1, 2}).nodes, (Nodes{{0}, {1}, {2}}));
  EXPECT_EQ(make_topology(0, {0}).nodes, (Nodes{{0}}));
}

TEST(Topology, EachRankFindsItself) {
  const std::vector<int> firsts = {0, 1, 1, 0, 4, 1};
  const std::vector<int> nodes = {0, 1, 1, 0, 2, 1};
  const std::vector<int> sizes = {2, 3, 3, 2, 1, 3};
  for (int rank = 0; rank < 6; ++rank) {
    const Topology topology = make_topology(rank, firsts);
    EXPECT_EQ(topology.node_of, nodes);
    EXPECT_EQ(topology.node(), nodes[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(topology.node_ranks(), sizes[static_cast<std::size_t>(rank)]);
  }
}

TEST(Topology, IsDiscovered) {
  Communicator comm(MPI_COMM_WORLD);
  const Topology topology = discover_topology(comm);
  comm.free();
  EXPECT_EQ(topology.rank, test::world_rank());
  EXPECT_EQ(topology.ranks, test::world_size());
  int placed = 0;
  for (const auto& node : topology.nodes) placed += static_cast<int>(node.size());
  EXPECT_EQ(placed, topology.ranks);
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int node_ranks = 0;
  MPI_Comm_size(node, &node_ranks);
  MPI_Comm_free(&node);
  EXPECT_EQ(topology.node_ranks(), node_ranks);
}

TEST(Topology, IsOfTheCommunicatorAskedFor) {
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -test::world_rank(), &reversed);
  Communicator comm(reversed);
  const Topology topology = discover_topology(comm);
  EXPECT_EQ(topology.rank, test::world_size() - 1 - test::world_rank());
  comm.free();
  MPI_Comm_free(&reversed);
}

}  // namespace
}  // namespace gemini
