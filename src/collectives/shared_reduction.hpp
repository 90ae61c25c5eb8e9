// Gradients added where they lie: each rank reads its slice of the buffer of every rank of its node.
//
// A buffer is handed over as soon as it is final, whatever the queue is busy with, and may be used again once
// all ranks of the node have added their slices. What ranks of other nodes add up is then exchanged: sums of
// the same slice where each node has a copy of the model, sums for each other's slices where nodes share one.
#pragma once

#include "collectives/mpi_reduction.hpp"
#include "collectives/shared_node.hpp"

namespace gemini {

// One rank of each node or group: who exchanges sums with whom, this rank too.
struct SumRoute {
  std::vector<int> peers;   // ranks of comm, in the order in which sums are added
  int me;                   // in peers
  std::vector<int> slices;  // of a buffer: what peer i adds up in the end
  MPI_Comm comm = MPI_COMM_NULL;
};

class SharedReduction final : public Operation {
 public:
  // number: of the buffer, in the order of hand-over; 1 is the first.
  SharedReduction(const SumRoute& route, ReductionRoom& room, const SharedNode& node,
                  const GradientReduction& reduction, std::uint32_t number);
  bool poll() override;

 private:
  enum class Stage { waiting, sums, added };

  [[nodiscard]] bool all(SharedSegment::Counter SharedSegment::Mail::*counter) const;  // of the node
  [[nodiscard]] CanonicalSum::Contributions slice(int index, std::int64_t first) const;
  void begin();
  void send_sums();
  void add_sums();
  void finish();

  const SumRoute& route_;
  ReductionRoom& room_;
  const SharedNode& node_;
  GradientReduction reduction_;
  std::uint32_t number_;
  PeerExchange exchange_;
  Stage stage_ = Stage::waiting;
  std::int64_t piece_elems_;
  std::int64_t first_ = 0, count_ = 0;  // of the shard: what is done, and is under way
  CanonicalSum::Contributions to_add_;  // of the nodes or groups
};

}  // namespace gemini
