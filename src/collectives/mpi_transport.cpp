#include "collectives/mpi_transport.hpp"

#include <algorithm>
#include <optional>

namespace gemini {

MpiTransport::MpiTransport(Communicator comm, Topology topology, std::int64_t count_limit)
    : comm_(std::move(comm)),
      topology_(std::move(topology)),
      count_limit_(count_limit),
      sum_(topology_.nodes) {}

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
    const bool in_place = chunk_.shard == slot_ + transport_.topology_.rank * chunk_.shard_bytes();
    const void* from = in_place ? MPI_IN_PLACE : chunk_.shard + offset;
    check_mpi(MPI_Iallgather(from, count, mpi_type(chunk_.dtype), slot_ + offset, 1, piece_->get(),
                             transport_.comm_.get(), &request_),
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

// Each rank sends every peer the peer's slice, piece by piece; an empty message stands for zeros.
class MpiTransport::Reduction final : public Operation {
 public:
  Reduction(MpiTransport& transport, const GradientReduction& reduction)
      : transport_(transport),
        reduction_(reduction),
        contributions_(static_cast<std::size_t>(transport.ranks())) {
    const std::int64_t fits = kStagingBytes / size_of(reduction.dtype) / transport.ranks();
    piece_elems_ = std::max<std::int64_t>(1, std::min({reduction.shard_elems, fits, transport.count_limit_}));
  }

  bool poll() override {
    if (requests_.empty()) post();
    int done = 0;
    statuses_.resize(requests_.size());
    check_mpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, statuses_.data()),
              "MPI_Testall");
    if (!done) return false;
    add();
    requests_.clear();
    return first_ == reduction_.shard_elems;
  }

 private:
  void post() {
    count_ = std::min(piece_elems_, reduction_.shard_elems - first_);
    const std::int64_t bytes = piece_elems_ * size_of(reduction_.dtype);
    transport_.staging_.resize(static_cast<std::size_t>(bytes * transport_.ranks()));
    requests_.assign(2 * contributions_.size(), MPI_REQUEST_NULL);
    for (int peer = 0; peer < transport_.ranks(); ++peer) {
      contributions_[static_cast<std::size_t>(peer)] = transport_.staging_.data() + peer * bytes;
      if (peer == transport_.topology_.rank) continue;
      check_mpi(MPI_Irecv(transport_.staging_.data() + peer * bytes, static_cast<int>(count_), type(), peer,
                          kTag, transport_.comm_.get(), &requests_[static_cast<std::size_t>(2 * peer)]),
                "MPI_Irecv");
    }
    for (int step = 1; step < transport_.ranks(); ++step)
      send((transport_.topology_.rank + step) % transport_.ranks());
  }

  void send(int peer) {
    const int count = reduction_.gradient == nullptr ? 0 : static_cast<int>(count_);
    check_mpi(MPI_Isend(slice(peer), count, type(), peer, kTag, transport_.comm_.get(),
                        &requests_[static_cast<std::size_t>(2 * peer + 1)]),
              "MPI_Isend");
  }

  // This rank's gradient of the elements that `peer` owns.
  [[nodiscard]] const std::byte* slice(int peer) const {
    if (reduction_.gradient == nullptr) return nullptr;
    return reduction_.gradient + (peer * reduction_.shard_elems + first_) * size_of(reduction_.dtype);
  }

  void add() {
    const auto me = static_cast<std::size_t>(transport_.topology_.rank);
    for (std::size_t peer = 0; peer < contributions_.size(); ++peer) {
      int received = 0;
      if (peer != me)
        check_mpi(MPI_Get_count(&statuses_[2 * peer], type(), &received), "MPI_Get_count");
      else if (reduction_.gradient != nullptr)
        continue;
      if (received == 0) {
        std::byte* place = transport_.staging_.data() +
                           static_cast<std::int64_t>(peer) * piece_elems_ * size_of(reduction_.dtype);
        std::fill_n(place, count_ * size_of(reduction_.dtype), std::byte{0});
      }
    }
    if (reduction_.gradient != nullptr) contributions_[me] = slice(transport_.topology_.rank);
    transport_.sum_.store(reduction_, first_, count_, contributions_);
    first_ += count_;
  }

  [[nodiscard]] MPI_Datatype type() const { return mpi_type(reduction_.dtype); }

  static constexpr int kTag = 3;
  MpiTransport& transport_;
  GradientReduction reduction_;
  std::int64_t piece_elems_;
  std::int64_t first_ = 0;  // elements of the shard that are done
  std::int64_t count_ = 0;  // in the piece under way
  std::vector<const std::byte*> contributions_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
};

std::unique_ptr<Operation> MpiTransport::acquire(const ShardedChunk& chunk, std::byte* slot) {
  wire_.gather_bytes += chunk.shard_bytes() * (topology_.ranks - 1);
  return std::make_unique<Gather>(*this, chunk, slot);
}

std::unique_ptr<Operation> MpiTransport::reduce(const GradientReduction& reduction) {
  if (reduction.gradient != nullptr)
    wire_.reduce_bytes += reduction.shard_elems * size_of(reduction.dtype) * (topology_.ranks - 1);
  return std::make_unique<Reduction>(*this, reduction);
}

}  // namespace gemini
