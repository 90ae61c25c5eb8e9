// Which ranks share a node, and who is where.
#pragma once

#include <vector>

#include "collectives/mpi.hpp"

namespace gemini {

struct Topology {
  int rank = 0;
  int ranks = 1;
  std::vector<int> node_of;             // by rank; nodes are numbered in order of their first rank
  std::vector<std::vector<int>> nodes;  // the ranks of each node, ascending

  [[nodiscard]] int node() const { return node_of[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int node_ranks() const {
    return static_cast<int>(nodes[static_cast<std::size_t>(node())].size());
  }
};

// first_rank_of_node[r]: the lowest rank on the node of r.
Topology make_topology(int rank, const std::vector<int>& first_rank_of_node);

// Collective over comm.
Topology discover_topology(const Communicator& comm);

}  // namespace gemini
