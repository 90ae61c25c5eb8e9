// Chunks over plain MPI: all-gathers, and gradients exchanged point to point so that they can be added in
// the canonical order and in wide arithmetic.
#pragma once

#include <climits>
#include <vector>

#include "collectives/canonical_sum.hpp"
#include "collectives/topology.hpp"
#include "collectives/transport.hpp"

namespace gemini {

class MpiTransport final : public Transport {
 public:
  // What one reduction receives at a time, over all peers.
  static constexpr std::int64_t kStagingBytes = std::int64_t{8} << 20;

  // comm carries chunks alone. count_limit: the largest count given to MPI; tests lower it.
  MpiTransport(Communicator comm, Topology topology, std::int64_t count_limit = INT_MAX);

  [[nodiscard]] const char* name() const override { return "mpi"; }
  [[nodiscard]] int ranks() const override { return topology_.ranks; }
  [[nodiscard]] bool needs_slot() const override { return true; }
  std::unique_ptr<Operation> acquire(const ShardedChunk& chunk, std::byte* slot) override;
  [[nodiscard]] std::byte* view(const ShardedChunk&, std::byte* slot) const override { return slot; }
  std::unique_ptr<Operation> reduce(const GradientReduction& reduction) override;

  void free_communicator() noexcept { comm_.free(); }

 private:
  class Gather;
  class Reduction;

  Communicator comm_;
  Topology topology_;
  std::int64_t count_limit_;
  CanonicalSum sum_;
  std::vector<std::byte> staging_;  // one reduction runs at a time
};

}  // namespace gemini
