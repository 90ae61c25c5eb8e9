// Chunks over several nodes, once on each: the ranks of a node share the slots of gathered chunks.
//
// Of a gather each rank brings what the ranks of its rail hold, one rank of each node, and all parts land in
// the shared slot; so a node receives each shard once. Of a reduction each rank adds up, for every rank of
// its rail, what the node has of that rank's slice, and the sums travel along the rail.
//
// Which slot a chunk gets follows from the order of calls alone, so every rank finds it by itself. A slot is
// written again when all ranks of the node have left what was in it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collectives/node_transport.hpp"

namespace gemini {

class NodesTransport final : public NodeTransport {
 public:
  // Can these ranks share like this? One group, on nodes of equally many ranks.
  static bool possible(const Topology& topology);

  // Collective over the communicator of mpi.
  NodesTransport(std::unique_ptr<MpiTransport> mpi, const Topology& topology);

  std::string share(Agreement& agreement, const std::vector<SharedChunk>& chunks) override;
  void free_communicator() noexcept { rail_.free(); }

  std::unique_ptr<Operation> acquire(const ShardedChunk& chunk, std::byte* slot) override;
  [[nodiscard]] int ranks_per_slot() const override { return node_.declined() ? 1 : node_.ranks(); }
  PageSource& open_slot(int chunk) override;
  PageSource& close_slot(int chunk) override;
  std::unique_ptr<Operation> clear_slot(int chunk) override;
  void leave(int chunk) override;

 private:
  [[nodiscard]] int place_of(int chunk) const { return slot_of_[static_cast<std::size_t>(chunk)]; }

  Communicator rail_;
  std::vector<int> shards_of_rail_;
  // Each chunk has a place of its size in the segment; a gathered chunk lies in any of that size.
  std::vector<std::uint32_t> gathered_;            // into each place
  std::vector<int> slot_of_;                       // by chunk: its place; -1: none
  std::vector<std::int64_t> bytes_;                // by chunk
  std::map<std::int64_t, std::vector<int>> free_;  // places by size
};

}  // namespace gemini
