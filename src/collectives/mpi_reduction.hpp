// Gradients exchanged point to point, added in the canonical order.
//
// Each rank sends every peer of its group the peer's slice, piece by piece; an empty message stands for
// zeros. Then the sums of the groups travel among the ranks that hold the same shard.
#pragma once

#include <vector>

#include "collectives/canonical_sum.hpp"
#include "collectives/peer_exchange.hpp"
#include "collectives/topology.hpp"
#include "collectives/wire_format.hpp"

namespace gemini {

// What the reductions of a transport share; one is under way at a time.
struct ReductionRoom {
  ReductionRoom(const Topology& topology, std::int64_t bytes, std::int64_t limit);
  // Of ranks on one node, and sums of several nodes or groups.
  ReductionRoom(int node_ranks, int sums, std::int64_t bytes, std::int64_t limit);

  CanonicalSum group_sum, replica_sum;
  std::int64_t staging_bytes;  // of each array below
  std::int64_t count_limit;    // of MPI
  std::vector<std::byte> sent, received, values, group_sums;
};

// Places of so many bytes in the staging, one for each peer.
std::vector<std::byte*> places_in(std::vector<std::byte>& staging, std::size_t peers, std::int64_t bytes);

class MpiReduction final : public Operation {
 public:
  MpiReduction(MPI_Comm comm, const Topology& topology, ReductionRoom& room,
               const GradientReduction& reduction, const WireFormat& format);
  bool poll() override;

 private:
  enum class Stage { idle, slices, sums };
  using Places = std::vector<std::byte*>;

  void post_slices();
  void add_slices();
  void unpack_slices();
  void post_sums();
  void add_sums();
  void finish_piece();
  [[nodiscard]] const std::byte* slice(std::size_t peer) const;
  [[nodiscard]] std::vector<const std::byte*> packed_slices();
  [[nodiscard]] bool is_silent(std::size_t peer) const;

  ReductionRoom& room_;
  GradientReduction reduction_;
  WireFormat format_;
  PeerExchange slices_, sums_;
  Stage stage_ = Stage::idle;
  std::int64_t piece_elems_;
  std::int64_t first_ = 0;  // elements of the shard that are done
  std::int64_t count_ = 0;  // in the piece under way
  Places received_;
  CanonicalSum::Contributions contributions_;
};

}  // namespace gemini
