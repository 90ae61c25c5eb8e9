#include "collectives/shared_reduction.hpp"

#include <algorithm>

namespace gemini {

using Mail = SharedSegment::Mail;

SharedReduction::SharedReduction(const SumRoute& route, ReductionRoom& room, const SharedNode& node,
                                 const GradientReduction& reduction, std::uint32_t number)
    : route_(route),
      room_(room),
      node_(node),
      reduction_(reduction),
      number_(number),
      exchange_(route.comm, route.peers, route.me) {
  const std::int64_t fits =
      room.staging_bytes / size_of(wide(reduction.dtype)) / static_cast<std::int64_t>(route.peers.size());
  piece_elems_ = std::max<std::int64_t>(1, std::min({reduction.shard_elems, fits, room.count_limit}));
}

bool SharedReduction::all(SharedSegment::Counter Mail::*counter) const {
  for (int rank = 0; rank < node_.ranks(); ++rank)
    if (!all_reached(&(node_.segment().mail(rank).*counter), 1, number_)) return false;
  return true;
}

bool SharedReduction::poll() {
  if (stage_ == Stage::waiting && all(&Mail::handed)) begin();
  if (stage_ == Stage::sums && exchange_.test()) add_sums();
  return stage_ == Stage::added && all(&Mail::added);
}

// Where slice `index`, from element `first` of it, lies in each rank's buffer.
CanonicalSum::Contributions SharedReduction::slice(int index, std::int64_t first) const {
  CanonicalSum::Contributions contributions(static_cast<std::size_t>(node_.ranks()));
  const std::int64_t offset = (index * reduction_.shard_elems + first) * size_of(reduction_.dtype);
  for (int rank = 0; rank < node_.ranks(); ++rank) {
    const std::int64_t at =
        node_.segment().mail(rank).at[number_ % Mail::kSlots].load(std::memory_order_relaxed);
    if (at >= 0)
      contributions[static_cast<std::size_t>(rank)] = node_.segment().memory().data() + at + offset;
  }
  return contributions;
}

void SharedReduction::begin() {
  if (route_.peers.size() > 1) return send_sums();
  room_.group_sum.store(reduction_, 0, reduction_.shard_elems, slice(route_.slices.front(), 0));
  finish();
}

void SharedReduction::send_sums() {
  count_ = std::min(piece_elems_, reduction_.shard_elems - first_);
  const DType type = wide(reduction_.dtype);
  const std::size_t peers = route_.peers.size();
  const std::vector<std::byte*> received = places_in(room_.received, peers, count_ * size_of(type));
  const std::vector<std::byte*> sums = places_in(room_.group_sums, peers, count_ * size_of(type));
  std::vector<const std::byte*> sent(peers);
  for (std::size_t peer = 0; peer < peers; ++peer) {
    const bool again = peer > 0 && route_.slices[peer] == route_.slices[peer - 1];
    if (!again)
      room_.group_sum.add_up(reduction_.dtype, count_, slice(route_.slices[peer], first_), sums[peer]);
    sent[peer] = again ? sent[peer - 1] : sums[peer];
  }
  exchange_.post(mpi_type(type), static_cast<int>(count_), sent, received);
  to_add_.assign(received.begin(), received.end());
  to_add_[exchange_.me()] = sent[exchange_.me()];
  stage_ = Stage::sums;
}

void SharedReduction::add_sums() {
  GradientReduction of_sums = reduction_;
  of_sums.dtype = wide(reduction_.dtype);
  room_.replica_sum.store(of_sums, first_, count_, to_add_);
  first_ += count_;
  first_ < reduction_.shard_elems ? send_sums() : finish();
}

void SharedReduction::finish() {
  node_.segment().mail(node_.me()).added.store(number_, std::memory_order_release);
  stage_ = Stage::added;
}

}  // namespace gemini
