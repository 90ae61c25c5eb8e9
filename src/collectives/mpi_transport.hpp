// Chunks over plain MPI: all-gathers inside a group of ranks that share a copy of the model, and gradients
// exchanged point to point so that they can be added in the canonical order and in wide arithmetic.
#pragma once

#include <climits>
#include <string>
#include <vector>

#include "collectives/mpi_gather.hpp"
#include "collectives/mpi_reduction.hpp"
#include "collectives/topology.hpp"
#include "collectives/transport.hpp"

namespace gemini {

// What travels, as the options gather_dtype and reduce_dtype say it.
struct WireTypes {
  std::string gather = "same";
  std::string reduce = "same";
};

class MpiTransport final : public Transport {
 public:
  // What one operation receives at a time, over all peers, where it is not into its place.
  static constexpr std::int64_t kStagingBytes = std::int64_t{8} << 20;

  // comm carries chunks alone; collective over it where the topology has several groups. count_limit: the
  // largest count given to MPI; tests lower it.
  MpiTransport(Communicator comm, Topology topology, std::int64_t count_limit = INT_MAX,
               WireTypes types = {});

  [[nodiscard]] const char* name() const override { return "mpi"; }
  [[nodiscard]] int ranks() const override { return topology_.group_ranks(); }
  [[nodiscard]] bool needs_slot() const override { return ranks() > 1; }
  std::unique_ptr<Operation> acquire(const ShardedChunk& chunk, std::byte* slot) override;
  [[nodiscard]] std::byte* view(const ShardedChunk& chunk, std::byte* slot) const override {
    return slot != nullptr ? slot : chunk.shard;
  }
  std::unique_ptr<Operation> reduce(const GradientReduction& reduction) override;

  [[nodiscard]] const Communicator& comm() const { return comm_; }
  // Gathers into a slot what the ranks of the group hold.
  std::unique_ptr<Operation> gather(const GatherGroup& group, const ShardedChunk& chunk, std::byte* slot);
  [[nodiscard]] std::int64_t count_limit() const { return count_limit_; }
  // What is sent by others over its communicator.
  void count_sent(const WireCounters& more) {
    wire_.gather_bytes += more.gather_bytes;
    wire_.reduce_bytes += more.reduce_bytes;
  }
  void free_communicators() noexcept;

 private:
  Communicator comm_;
  Communicator group_comm_;  // where there are several groups
  Topology topology_;
  std::int64_t count_limit_;
  WireTypes types_;
  ReductionRoom reduction_room_;
  std::vector<std::byte> packed_;  // of the gather under way, which is one at a time
};

}  // namespace gemini
