// All-gathers of a chunk, in pieces.
#pragma once

#include <optional>
#include <vector>

#include "collectives/transport.hpp"
#include "collectives/wire_format.hpp"

namespace gemini {

// The ranks of a communicator that hold shards of a chunk, and the largest count that MPI is given.
struct GatherGroup {
  MPI_Comm comm;
  int rank, ranks;
  std::int64_t count_limit;
  std::vector<int> shards{};  // by rank: which shard it holds; empty: all, in order

  [[nodiscard]] int shard_of(int of_rank) const {
    return shards.empty() ? of_rank : shards[static_cast<std::size_t>(of_rank)];
  }
};

// Values as they are. Displacements are a datatype's extent, which is an address: no count or displacement
// passes the limit however large the chunk. A shard that stands in its place in the slot already is not
// copied.
class MpiGather final : public Operation {
 public:
  MpiGather(const GatherGroup& group, const ShardedChunk& chunk, std::byte* slot)
      : group_(group), chunk_(chunk), slot_(slot) {}
  bool poll() override;

 private:
  void post();

  GatherGroup group_;
  ShardedChunk chunk_;
  std::byte* slot_;
  std::optional<Datatype> piece_;
  std::vector<int> ones_;  // counts of pieces
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::int64_t posted_ = 0;
};

// Values in another format. Each rank unpacks all shards, its own too, so that all see the same values.
class PackedGather final : public Operation {
 public:
  // staging: grows to at most staging_bytes; one gather uses it at a time.
  PackedGather(const GatherGroup& group, const ShardedChunk& chunk, std::byte* slot, const WireFormat& format,
               std::vector<std::byte>& staging, std::int64_t staging_bytes);
  bool poll() override;

 private:
  void post();
  void unpack();

  GatherGroup group_;
  ShardedChunk chunk_;
  std::byte* slot_;
  WireFormat format_;
  std::vector<std::byte>& staging_;
  std::int64_t piece_elems_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::int64_t done_ = 0;   // elements of each shard
  std::int64_t count_ = 0;  // in the piece under way
};

}  // namespace gemini
