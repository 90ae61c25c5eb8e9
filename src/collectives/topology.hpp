// Which ranks share a node, which share a copy of the model, and who is where.
#pragma once

#include <string_view>
#include <vector>

#include "collectives/mpi.hpp"

namespace gemini {

struct Topology {
  int rank = 0;
  int ranks = 1;
  std::vector<int> node_of;             // by rank; nodes are numbered in order of their first rank
  std::vector<std::vector<int>> nodes;  // the ranks of each node, ascending
  // Each group of ranks holds one copy of the model, its i-th rank shard i of every chunk. One group of all
  // ranks, unless they were cut.
  std::vector<std::vector<int>> groups;
  int group = 0;        // of this rank
  int group_index = 0;  // of this rank in its group

  [[nodiscard]] int node() const { return node_of[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int node_ranks() const {
    return static_cast<int>(nodes[static_cast<std::size_t>(node())].size());
  }
  [[nodiscard]] int group_ranks() const { return static_cast<int>(groups.front().size()); }
  [[nodiscard]] int replicas() const { return static_cast<int>(groups.size()); }
  // The ranks that hold shard `index`, by group.
  [[nodiscard]] std::vector<int> owners(int index) const;
};

// first_rank_of_node[r]: the lowest rank on the node of r.
Topology make_topology(int rank, const std::vector<int>& first_rank_of_node);

// Collective over comm.
Topology discover_topology(const Communicator& comm);

// The same ranks as if they were on nodes of at most so many neighbours.
Topology cut_into_nodes(const Topology& topology, int node_ranks);

// Groups as the option shard_group asks for: of consecutive ranks, or the nodes. Throws GEMINI_ERR_ARGUMENT
// unless all are of one size.
void cut_into_groups(Topology& topology, std::string_view shard_group);

// The nodes that this rank's group lies on, each by its ranks' indices in the group.
std::vector<std::vector<int>> nodes_of_group(const Topology& topology);

}  // namespace gemini
