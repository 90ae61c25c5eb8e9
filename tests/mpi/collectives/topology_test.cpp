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

TEST(ShardGroups, AreOneUnlessCut) {
  const Topology topology = make_topology(2, {0, 0, 2, 2});
  EXPECT_EQ(topology.groups, (Nodes{{0, 1, 2, 3}}));
  EXPECT_EQ(topology.group_ranks(), 4);
  EXPECT_EQ(topology.replicas(), 1);
  EXPECT_EQ(topology.group, 0);
  EXPECT_EQ(topology.group_index, 2);
  EXPECT_EQ(nodes_of_group(topology), topology.nodes);
}

TEST(ShardGroups, AreOfConsecutiveRanksOrNodes) {
  struct Case {
    std::vector<int> firsts;
    const char* shard_group;
    Nodes groups;
  };
  for (const Case& c :
       {Case{{0, 0, 0, 0}, "2", {{0, 1}, {2, 3}}}, Case{{0, 0, 0, 0}, "1", {{0}, {1}, {2}, {3}}},
        Case{{0, 1, 0, 1}, "world", {{0, 1, 2, 3}}}, Case{{0, 1, 0, 1}, "node", {{0, 2}, {1, 3}}},
        Case{{0, 0, 0}, "node", {{0, 1, 2}}}, Case{{0, 0, 0}, "3", {{0, 1, 2}}}})
    for (int rank = 0; rank < static_cast<int>(c.firsts.size()); ++rank) {
      Topology topology = make_topology(rank, c.firsts);
      cut_into_groups(topology, c.shard_group);
      EXPECT_EQ(topology.groups, c.groups) << c.shard_group;
      const auto group = static_cast<std::size_t>(topology.group);
      EXPECT_EQ(topology.groups[group][static_cast<std::size_t>(topology.group_index)], rank);
      const std::vector<int> owners = topology.owners(topology.group_index);
      EXPECT_EQ(static_cast<int>(owners.size()), topology.replicas());
      EXPECT_EQ(owners[group], rank);
    }
}

TEST(ShardGroups, KnowTheNodesTheyLieOn) {
  Topology topology = make_topology(4, {0, 1, 0, 0, 4, 1, 4, 1});  // nodes 0 2 3, 1 5 7, 4 6
  cut_into_groups(topology, "4");
  EXPECT_EQ(nodes_of_group(topology), (Nodes{{0, 2}, {1, 3}}));  // ranks 4 6 and 5 7
  topology = make_topology(1, {0, 1, 0, 0, 4, 1, 4, 1});
  cut_into_groups(topology, "4");
  EXPECT_EQ(nodes_of_group(topology), (Nodes{{0, 2, 3}, {1}}));
}

TEST(ShardGroups, ComeOutEvenOrAreRefused) {
  Topology topology = make_topology(0, {0, 0, 0, 3, 3, 5});
  for (const char* wrong : {"4", "5", "7", "0"}) {
    const auto outcome = test::outcome_of([&] { cut_into_groups(topology, wrong); });
    EXPECT_EQ(outcome.status, GEMINI_ERR_ARGUMENT) << wrong;
    EXPECT_TRUE(outcome.says(std::string("shard_group = ") + wrong) && outcome.says("the 6 ranks"));
  }
  const auto outcome = test::outcome_of([&] { cut_into_groups(topology, "node"); });
  EXPECT_EQ(outcome.status, GEMINI_ERR_ARGUMENT);
  EXPECT_TRUE(outcome.says("node 0 has 3") && outcome.says("node 1 has 2")) << outcome.words;
}

}  // namespace
}  // namespace gemini
