#include "collectives/mpi_reduction.hpp"

#include <algorithm>
#include <numeric>

namespace gemini {
namespace {

// One sum of each group, in the order of the groups.
std::vector<std::vector<int>> one_node_of(int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return {all};
}

}  // namespace

std::vector<std::byte*> places_in(std::vector<std::byte>& staging, std::size_t peers, std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  if (staging.size() < size * peers) staging.resize(size * peers);
  std::vector<std::byte*> places;
  for (std::size_t peer = 0; peer < peers; ++peer) places.push_back(staging.data() + peer * size);
  return places;
}

ReductionRoom::ReductionRoom(const Topology& topology, std::int64_t bytes, std::int64_t limit)
    : group_sum(nodes_of_group(topology)),
      replica_sum(one_node_of(topology.replicas())),
      staging_bytes(bytes),
      count_limit(limit) {}

ReductionRoom::ReductionRoom(int node_ranks, int sums, std::int64_t bytes, std::int64_t limit)
    : group_sum(one_node_of(node_ranks)),
      replica_sum(one_node_of(sums)),
      staging_bytes(bytes),
      count_limit(limit) {}

MpiReduction::MpiReduction(MPI_Comm comm, const Topology& topology, ReductionRoom& room,
                           const GradientReduction& reduction, const WireFormat& format)
    : room_(room),
      reduction_(reduction),
      format_(format),
      slices_(comm, topology.groups[static_cast<std::size_t>(topology.group)], topology.group_index),
      sums_(comm, topology.owners(topology.group_index), topology.group) {
  const auto messages = static_cast<std::int64_t>(std::max(slices_.peers(), sums_.peers()));
  const std::int64_t fits = room.staging_bytes / size_of(wide(reduction.dtype)) / messages;
  piece_elems_ = std::max<std::int64_t>(1, std::min({reduction.shard_elems, fits, room.count_limit}));
}

bool MpiReduction::poll() {
  if (stage_ == Stage::idle) post_slices();
  if (stage_ == Stage::slices && slices_.test()) add_slices();
  if (stage_ == Stage::sums && sums_.test()) add_sums();
  return stage_ == Stage::idle && first_ == reduction_.shard_elems;
}

void MpiReduction::post_slices() {
  count_ = std::min(piece_elems_, reduction_.shard_elems - first_);
  received_ = places_in(room_.received, slices_.peers(), format_.bytes_for(count_));
  const auto sent = packed_slices();
  slices_.post(format_.type(), format_.count_for(count_), sent, received_);
  stage_ = Stage::slices;
}

// This rank's gradient of the elements that `peer` owns.
const std::byte* MpiReduction::slice(std::size_t peer) const {
  const std::int64_t first = static_cast<std::int64_t>(peer) * reduction_.shard_elems + first_;
  return reduction_.gradient + first * size_of(reduction_.dtype);
}

std::vector<const std::byte*> MpiReduction::packed_slices() {
  std::vector<const std::byte*> slices(slices_.peers());
  if (reduction_.gradient == nullptr) return slices;
  for (std::size_t peer = 0; peer < slices.size(); ++peer) slices[peer] = slice(peer);
  if (!format_.converts()) return slices;
  const Places places = places_in(room_.sent, slices_.peers(), format_.bytes_for(count_));
  for (std::size_t peer = 0; peer < slices.size(); ++peer) {
    format_.pack(slices[peer], count_, places[peer]);
    slices[peer] = places[peer];
  }
  received_[slices_.me()] = places[slices_.me()];  // this rank, too, adds what would have travelled
  return slices;
}

bool MpiReduction::is_silent(std::size_t peer) const {
  return peer == slices_.me() ? reduction_.gradient == nullptr : slices_.empty_from(peer);
}

void MpiReduction::unpack_slices() {
  const std::int64_t bytes = count_ * size_of(reduction_.dtype);
  const Places values = format_.converts() ? places_in(room_.values, slices_.peers(), bytes) : received_;
  contributions_.assign(values.begin(), values.end());
  for (std::size_t peer = 0; peer < slices_.peers(); ++peer) {
    if (is_silent(peer))
      contributions_[peer] = nullptr;
    else if (format_.converts())
      format_.unpack(received_[peer], count_, values[peer]);
    else if (peer == slices_.me())
      contributions_[peer] = slice(peer);
  }
}

void MpiReduction::add_slices() {
  unpack_slices();
  if (sums_.peers() > 1) {
    post_sums();
  } else {
    room_.group_sum.store(reduction_, first_, count_, contributions_);
    finish_piece();
  }
}

void MpiReduction::post_sums() {
  const DType type = wide(reduction_.dtype);
  const Places places = places_in(room_.group_sums, sums_.peers(), count_ * size_of(type));
  std::byte* mine = places[sums_.me()];
  room_.group_sum.add_up(reduction_.dtype, count_, contributions_, mine);
  sums_.post(mpi_type(type), static_cast<int>(count_), std::vector<const std::byte*>(sums_.peers(), mine),
             places);
  contributions_.assign(places.begin(), places.end());
  stage_ = Stage::sums;
}

void MpiReduction::add_sums() {
  GradientReduction of_sums = reduction_;
  of_sums.dtype = wide(reduction_.dtype);
  room_.replica_sum.store(of_sums, first_, count_, contributions_);
  finish_piece();
}

void MpiReduction::finish_piece() {
  first_ += count_;
  stage_ = Stage::idle;
}

}  // namespace gemini
