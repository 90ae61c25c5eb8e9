// Chunks that the ranks of a group share on their node: shards lie side by side, so that gathering moves
// nothing, and gradients are read where they were written.
//
// What does not lie in the segment, shards in lower tiers and kept gradients, goes over plain MPI, and so
// does everything where a node has no room for the segment. Which way a chunk goes is the same on all ranks.
//
// Who reads a chunk waits for the last version of all its shards. Who writes one need not wait for readers:
// shards change only after ranks agreed to a call in which nobody reads. Only a shard that leaves compute
// memory in the middle of an iteration waits for them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/mpi_transport.hpp"
#include "collectives/node_transport.hpp"

namespace gemini {

class SharedTransport final : public NodeTransport {
 public:
  // Can these ranks share like this? Each group must lie on one node.
  static bool possible(const Topology& topology);

  SharedTransport(std::unique_ptr<MpiTransport> mpi, const Topology& topology);

  std::string share(Agreement& agreement, const std::vector<SharedChunk>& chunks) override;

  [[nodiscard]] bool needs_slot() const override { return node_.declined(); }
  std::unique_ptr<Operation> acquire(const ShardedChunk& chunk, std::byte* slot) override;
  [[nodiscard]] std::byte* view(const ShardedChunk& chunk, std::byte* slot) const override;
  PageSource& shard_pages(int chunk) override;
  void publish(int chunk) override;
  void leave(int chunk) override;
  std::unique_ptr<Operation> vacate(int chunk) override;

 private:
  std::vector<std::uint32_t> published_, left_;  // by chunk: how often here
};

}  // namespace gemini
