#include "collectives/mpi_transport.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "collectives/basic_operations.hpp"
#include "collectives/peer_exchange.hpp"

namespace gemini {
namespace {

// One replica of each group's sum, in the order of the groups.
std::vector<std::vector<int>> one_node_of(int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return {all};
}

}  // namespace

MpiTransport::MpiTransport(Communicator comm, Topology topology, std::int64_t count_limit)
    : comm_(std::move(comm)),
      topology_(std::move(topology)),
      count_limit_(count_limit),
      group_sum_(nodes_of_group(topology_)),
      replica_sum_(one_node_of(topology_.replicas())) {
  if (topology_.replicas() > 1)
    group_comm_ = Communicator::split(comm_, topology_.group, topology_.group_index);
}

// One all-gather per piece of at most count_limit elements. Displacements are a datatype's extent, which is
// an address: no count or displacement passes count_limit however large the chunk. A shard that stands in its
// place in the slot already is not copied.
class MpiTransport::Gather final : public Operation {
 public:
  Gather(const MpiTransport& transport, const ShardedChunk& chunk, std::byte* slot)
      : transport_(transport), chunk_(chunk), slot_(slot) {}

  bool poll() override {
    if (request_ == MPI_REQUEST_NULL) post();
    int done = 0;
    check_mpi(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done && posted_ == chunk_.shard_elems;
  }

 private:
  void post() {
    const int count = static_cast<int>(std::min(chunk_.shard_elems - posted_, transport_.count_limit_));
    const std::int64_t offset = posted_ * size_of(chunk_.dtype);
    piece_.emplace(mpi_type(chunk_.dtype), count, chunk_.shard_bytes());
    const bool in_place = chunk_.shard == slot_ + transport_.topology_.group_index * chunk_.shard_bytes();
    const void* from = in_place ? MPI_IN_PLACE : chunk_.shard + offset;
    check_mpi(MPI_Iallgather(from, count, mpi_type(chunk_.dtype), slot_ + offset, 1, piece_->get(),
                             transport_.group_comm().get(), &request_),
              "MPI_Iallgather");
    posted_ += count;
  }

  const MpiTransport& transport_;
  ShardedChunk chunk_;
  std::byte* slot_;
  std::optional<Datatype> piece_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::int64_t posted_ = 0;
};

// Each rank sends every peer of its group the peer's slice, piece by piece; an empty message stands for
// zeros. Then the sums of the groups travel among the ranks that hold the same shard.
class MpiTransport::Reduction final : public Operation {
 public:
  Reduction(MpiTransport& transport, const GradientReduction& reduction)
      : transport_(transport),
        reduction_(reduction),
        slices_(transport.comm_.get(),
                transport.topology_.groups[static_cast<std::size_t>(transport.topology_.group)],
                transport.topology_.group_index),
        sums_(transport.comm_.get(), transport.topology_.owners(transport.topology_.group_index),
              transport.topology_.group) {
    const auto messages = static_cast<std::int64_t>(std::max(slices_.peers(), sums_.peers()));
    const std::int64_t fits = kStagingBytes / size_of(wide(reduction.dtype)) / messages;
    piece_elems_ = std::max<std::int64_t>(1, std::min({reduction.shard_elems, fits, transport.count_limit_}));
  }

  bool poll() override {
    if (stage_ == Stage::idle) post_slices();
    if (stage_ == Stage::slices && slices_.test()) add_slices();
    if (stage_ == Stage::sums && sums_.test()) add_sums();
    return stage_ == Stage::idle && first_ == reduction_.shard_elems;
  }

 private:
  enum class Stage { idle, slices, sums };

  void post_slices() {
    count_ = std::min(piece_elems_, reduction_.shard_elems - first_);
    const auto places = places_in(transport_.received_, slices_.peers(), reduction_.dtype);
    contributions_.assign(places.begin(), places.end());
    std::vector<const std::byte*> sent;
    for (std::size_t peer = 0; peer < slices_.peers(); ++peer) sent.push_back(slice(peer));
    slices_.post(mpi_type(reduction_.dtype), static_cast<int>(count_), sent, places);
    stage_ = Stage::slices;
  }

  // This rank's gradient of the elements that `peer` owns.
  [[nodiscard]] const std::byte* slice(std::size_t peer) const {
    if (reduction_.gradient == nullptr) return nullptr;
    return reduction_.gradient +
           (static_cast<std::int64_t>(peer) * reduction_.shard_elems + first_) * size_of(reduction_.dtype);
  }

  // One place of a piece of `type` for each peer.
  [[nodiscard]] std::vector<std::byte*> places_in(std::vector<std::byte>& staging, std::size_t peers,
                                                  DType type) const {
    const auto bytes = static_cast<std::size_t>(count_ * size_of(type));
    if (staging.size() < bytes * peers) staging.resize(bytes * peers);
    std::vector<std::byte*> places;
    for (std::size_t peer = 0; peer < peers; ++peer) places.push_back(staging.data() + peer * bytes);
    return places;
  }

  void add_slices() {
    const auto bytes = count_ * size_of(reduction_.dtype);
    for (std::size_t peer = 0; peer < slices_.peers(); ++peer) {
      const bool mine = peer == slices_.me();
      if (mine ? reduction_.gradient == nullptr : slices_.empty_from(peer))
        std::fill_n(transport_.received_.data() + static_cast<std::int64_t>(peer) * bytes, bytes,
                    std::byte{0});
      else if (mine)
        contributions_[peer] = slice(peer);
    }
    if (transport_.topology_.replicas() == 1) {
      transport_.group_sum_.store(reduction_, first_, count_, contributions_);
      finish_piece();
    } else {
      post_sums();
    }
  }

  void post_sums() {
    const DType type = wide(reduction_.dtype);
    const auto places = places_in(transport_.group_sums_, sums_.peers(), type);
    std::byte* mine = places[sums_.me()];
    transport_.group_sum_.add_up(reduction_.dtype, count_, contributions_, mine);
    sums_.post(mpi_type(type), static_cast<int>(count_), std::vector<const std::byte*>(sums_.peers(), mine),
               places);
    contributions_.assign(places.begin(), places.end());
    stage_ = Stage::sums;
  }

  void add_sums() {
    GradientReduction of_sums = reduction_;
    of_sums.dtype = wide(reduction_.dtype);
    transport_.replica_sum_.store(of_sums, first_, count_, contributions_);
    finish_piece();
  }

  void finish_piece() {
    first_ += count_;
    stage_ = Stage::idle;
  }

  MpiTransport& transport_;
  GradientReduction reduction_;
  PeerExchange slices_, sums_;
  Stage stage_ = Stage::idle;
  std::int64_t piece_elems_;
  std::int64_t first_ = 0;  // elements of the shard that are done
  std::int64_t count_ = 0;  // in the piece under way
  std::vector<const std::byte*> contributions_;
};

std::unique_ptr<Operation> MpiTransport::acquire(const ShardedChunk& chunk, std::byte* slot) {
  if (slot == nullptr && ranks() == 1) return std::make_unique<Nothing>();  // the shard is the chunk
  wire_.gather_bytes += chunk.shard_bytes() * (ranks() - 1);
  return std::make_unique<Gather>(*this, chunk, slot);
}

std::unique_ptr<Operation> MpiTransport::reduce(const GradientReduction& reduction) {
  if (reduction.gradient != nullptr)
    wire_.reduce_bytes += reduction.shard_elems * size_of(reduction.dtype) * (ranks() - 1);
  wire_.reduce_bytes += reduction.shard_elems * size_of(wide(reduction.dtype)) * (topology_.replicas() - 1);
  return std::make_unique<Reduction>(*this, reduction);
}

void MpiTransport::free_communicators() noexcept {
  group_comm_.free();
  comm_.free();
}

}  // namespace gemini
