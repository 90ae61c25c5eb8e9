#include "collectives/topology.hpp"

namespace gemini {

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

}  // namespace gemini
