#include "collectives/shared_reduction.hpp"

#include <algorithm>

namespace gemini {

using Mail = SharedSegment::Mail;

SharedReduction::SharedReduction(MPI_Comm comm, const Topology& topology, ReductionRoom& room,
                                 const SharedSegment& segment, const GradientReduction& reduction,
                                 std::uint32_t number)
    : room_(room),
      segment_(segment),
      reduction_(reduction),
      number_(number),
      me_(topology.group_index),
      ranks_(topology.group_ranks()),
      sums_(comm, topology.owners(topology.group_index), topology.group) {
  const std::int64_t fits =
      room.staging_bytes / size_of(wide(reduction.dtype)) / static_cast<std::int64_t>(sums_.peers());
  piece_elems_ = std::max<std::int64_t>(1, std::min({reduction.shard_elems, fits, room.count_limit}));
}

bool SharedReduction::all_reached(SharedSegment::Counter Mail::*counter) const {
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::uint32_t reached = (segment_.mail(rank).*counter).load(std::memory_order_acquire);
    if (static_cast<std::int32_t>(reached - number_) < 0) return false;
  }
  return true;
}

bool SharedReduction::poll() {
  if (stage_ == Stage::waiting && all_reached(&Mail::handed)) add_slices();
  if (stage_ == Stage::sums && sums_.test()) add_sums();
  return stage_ == Stage::added && all_reached(&Mail::added);
}

// Where this rank's slice lies in each buffer.
void SharedReduction::find_slices() {
  const std::int64_t bytes = reduction_.shard_elems * size_of(reduction_.dtype);
  slices_.assign(static_cast<std::size_t>(ranks_), nullptr);
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::int64_t at = segment_.mail(rank).at[number_ % Mail::kSlots].load(std::memory_order_relaxed);
    if (at >= 0) slices_[static_cast<std::size_t>(rank)] = segment_.memory().data() + at + me_ * bytes;
  }
}

void SharedReduction::add_slices() {
  find_slices();
  if (sums_.peers() > 1) return send_sums();
  room_.group_sum.store(reduction_, 0, reduction_.shard_elems, slices_);
  finish_slices();
}

CanonicalSum::Contributions SharedReduction::piece() const {
  CanonicalSum::Contributions contributions = slices_;
  for (const std::byte*& slice : contributions)
    if (slice != nullptr) slice += first_ * size_of(reduction_.dtype);
  return contributions;
}

void SharedReduction::send_sums() {
  count_ = std::min(piece_elems_, reduction_.shard_elems - first_);
  const DType type = wide(reduction_.dtype);
  received_ = places_in(room_.group_sums, sums_.peers(), count_ * size_of(type));
  std::byte* mine = received_[sums_.me()];
  room_.group_sum.add_up(reduction_.dtype, count_, piece(), mine);
  sums_.post(mpi_type(type), static_cast<int>(count_), std::vector<const std::byte*>(sums_.peers(), mine),
             received_);
  stage_ = Stage::sums;
}

void SharedReduction::add_sums() {
  GradientReduction of_sums = reduction_;
  of_sums.dtype = wide(reduction_.dtype);
  room_.replica_sum.store(of_sums, first_, count_, {received_.begin(), received_.end()});
  first_ += count_;
  first_ < reduction_.shard_elems ? send_sums() : finish_slices();
}

void SharedReduction::finish_slices() {
  segment_.mail(me_).added.store(number_, std::memory_order_release);
  stage_ = Stage::added;
}

}  // namespace gemini
