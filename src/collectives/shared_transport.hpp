// Chunks that the ranks of a group share on their node: gathering moves nothing, and gradients are read where
// they were written.
//
// What does not lie in the segment, shards in lower tiers and kept gradients, goes over plain MPI, and so
// does everything where a node has no room for the segment. Which way a chunk goes is the same on all ranks.
//
// Who reads a chunk waits for the last version of all its shards. Who writes one need not wait for readers:
// shards change only after ranks agreed to a call in which nobody reads. Only a shard that leaves compute
// memory in the middle of an iteration waits for them.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/agreement.hpp"
#include "collectives/mpi_transport.hpp"
#include "collectives/shared_pages.hpp"
#include "collectives/transport_over.hpp"

namespace gemini {

class SharedTransport final : public TransportOver {
 public:
  // Can these ranks share? Each group must lie on one node.
  static bool possible(const Topology& topology);

  SharedTransport(std::unique_ptr<MpiTransport> mpi, const Topology& topology);

  // Makes the segment; every rank calls, with the same chunks. Says why
  // not, or "": what one rank is refused is shared by none, for good.
  std::string share(Agreement& agreement, const std::vector<SharedChunk>& chunks);

  [[nodiscard]] bool declined() const { return declined_; }

  [[nodiscard]] const char* name() const override { return declined_ ? TransportOver::name() : "shared"; }
  [[nodiscard]] bool needs_slot() const override { return declined_; }
  std::unique_ptr<Operation> acquire(const ShardedChunk& chunk, std::byte* slot) override;
  [[nodiscard]] std::byte* view(const ShardedChunk& chunk, std::byte* slot) const override;
  std::unique_ptr<Operation> reduce(const GradientReduction& reduction) override;

  PageSource& shard_pages(int chunk) override;
  PageSource& gradient_pages() override;
  void publish(int chunk) override;
  void leave(int chunk) override;
  std::unique_ptr<Operation> vacate(int chunk) override;

 private:
  void create(std::int64_t& number, std::int64_t& nonce);
  void open(std::int64_t number, std::int64_t nonce);
  void reserve_range(std::int64_t offset, std::int64_t bytes);
  void reserve(const std::vector<SharedChunk>& chunks);
  void check_room() const;
  void prepare(const std::vector<SharedChunk>& chunks);

  Topology topology_;
  MPI_Comm comm_;  // of the reductions over groups
  ReductionRoom room_;
  SharedSegment segment_;
  bool declined_ = false;
  std::deque<ShardPages> shards_;
  std::optional<GradientPages> gradients_;
  std::vector<std::uint32_t> published_, left_;  // by chunk: how often here
  std::uint32_t handed_ = 0;
};

}  // namespace gemini
