// Gradients added where they lie: each rank reads its slice of every peer's buffer.
//
// A buffer is handed over as soon as it is final, whatever the queue is busy with, and may be used again once
// all ranks have added their slices. Sums of groups then travel as they do over plain MPI.
#pragma once

#include "collectives/mpi_reduction.hpp"
#include "collectives/shared_segment.hpp"

namespace gemini {

class SharedReduction final : public Operation {
 public:
  // number: of the buffer, in the order of hand-over; 1 is the first.
  SharedReduction(MPI_Comm comm, const Topology& topology, ReductionRoom& room, const SharedSegment& segment,
                  const GradientReduction& reduction, std::uint32_t number);
  bool poll() override;

 private:
  [[nodiscard]] bool all_reached(SharedSegment::Counter SharedSegment::Mail::*counter) const;
  void find_slices();
  void add_slices();
  void send_sums();
  void add_sums();
  void finish_slices();
  [[nodiscard]] CanonicalSum::Contributions piece() const;

  enum class Stage { waiting, sums, added };
  ReductionRoom& room_;
  const SharedSegment& segment_;
  GradientReduction reduction_;
  std::uint32_t number_;
  int me_, ranks_;
  PeerExchange sums_;
  Stage stage_ = Stage::waiting;
  CanonicalSum::Contributions slices_;
  std::int64_t piece_elems_;
  std::int64_t first_ = 0, count_ = 0;  // of the shard: what is done, and is under way
  std::vector<std::byte*> received_;
};

}  // namespace gemini
