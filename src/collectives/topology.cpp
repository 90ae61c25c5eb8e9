#include "collectives/topology.hpp"

#include <string>

#include "base/error.hpp"
#include "base/text.hpp"

namespace gemini {
namespace {

std::vector<std::vector<int>> consecutive_groups(int ranks, std::string_view shard_group) {
  const std::int64_t size = text::parse_integer(shard_group).value_or(0);
  if (size < 1 || ranks % size != 0)
    fail(GEMINI_ERR_ARGUMENT, "option shard_group = {}: a group must be a divisor of the {} ranks",
         shard_group, ranks);
  std::vector<std::vector<int>> groups(static_cast<std::size_t>(ranks / size));
  for (int rank = 0; rank < ranks; ++rank) groups[static_cast<std::size_t>(rank / size)].push_back(rank);
  return groups;
}

void check_equal_nodes(const std::vector<std::vector<int>>& nodes) {
  for (std::size_t node = 1; node < nodes.size(); ++node)
    if (nodes[node].size() != nodes[0].size())
      fail(GEMINI_ERR_ARGUMENT,
           "option shard_group = node needs equally many ranks on each node: node 0 has {}, node {} has {}",
           nodes[0].size(), node, nodes[node].size());
}

}  // namespace

std::vector<int> Topology::owners(int index) const {
  std::vector<int> ranks_of_shard;
  for (const auto& members : groups) ranks_of_shard.push_back(members[static_cast<std::size_t>(index)]);
  return ranks_of_shard;
}

Topology make_topology(int rank, const std::vector<int>& first_rank_of_node) {
  Topology topology;
  topology.rank = rank;
  topology.ranks = static_cast<int>(first_rank_of_node.size());
  for (int r = 0; r < topology.ranks; ++r) {
    const int first = first_rank_of_node[static_cast<std::size_t>(r)];
    if (first == r) topology.nodes.emplace_back();
    const int node = first == r ? static_cast<int>(topology.nodes.size()) - 1
                                : topology.node_of[static_cast<std::size_t>(first)];
    topology.node_of.push_back(node);
    topology.nodes[static_cast<std::size_t>(node)].push_back(r);
  }
  cut_into_groups(topology, "world");
  return topology;
}

Topology discover_topology(const Communicator& comm) {
  const int rank = comm.rank();
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(comm.get(), MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node),
            "MPI_Comm_split_type");
  int first = rank;  // the lowest rank of comm is rank 0 of the node
  const int code = MPI_Bcast(&first, 1, MPI_INT, 0, node);
  MPI_Comm_free(&node);
  check_mpi(code, "MPI_Bcast");
  std::vector<int> firsts(static_cast<std::size_t>(comm.size()));
  check_mpi(MPI_Allgather(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, comm.get()), "MPI_Allgather");
  return make_topology(rank, firsts);
}

Topology cut_into_nodes(const Topology& topology, int node_ranks) {
  std::vector<int> first_rank_of_node;
  std::vector<int> seen(topology.nodes.size());
  std::vector<int> first(topology.nodes.size());
  for (int rank = 0; rank < topology.ranks; ++rank) {
    const auto node = static_cast<std::size_t>(topology.node_of[static_cast<std::size_t>(rank)]);
    if (seen[node]++ % node_ranks == 0) first[node] = rank;
    first_rank_of_node.push_back(first[node]);
  }
  return make_topology(topology.rank, first_rank_of_node);
}

void cut_into_groups(Topology& topology, std::string_view shard_group) {
  if (shard_group == "node") {
    check_equal_nodes(topology.nodes);
    topology.groups = topology.nodes;
  } else {
    topology.groups = consecutive_groups(
        topology.ranks, shard_group == "world" ? std::to_string(topology.ranks) : std::string(shard_group));
  }
  for (std::size_t group = 0; group < topology.groups.size(); ++group)
    for (std::size_t index = 0; index < topology.groups[group].size(); ++index)
      if (topology.groups[group][index] == topology.rank) {
        topology.group = static_cast<int>(group);
        topology.group_index = static_cast<int>(index);
      }
}

std::vector<std::vector<int>> nodes_of_group(const Topology& topology) {
  const auto& members = topology.groups[static_cast<std::size_t>(topology.group)];
  std::vector<int> first_on_node(topology.nodes.size(), -1);
  std::vector<int> firsts;
  for (std::size_t index = 0; index < members.size(); ++index) {
    int& first =
        first_on_node[static_cast<std::size_t>(topology.node_of[static_cast<std::size_t>(members[index])])];
    if (first < 0) first = static_cast<int>(index);
    firsts.push_back(first);
  }
  return make_topology(topology.group_index, firsts).nodes;
}

}  // namespace gemini
