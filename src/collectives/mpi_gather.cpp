#include "collectives/mpi_gather.hpp"

#include <algorithm>

namespace gemini {

bool MpiGather::poll() {
  if (request_ == MPI_REQUEST_NULL) post();
  int done = 0;
  check_mpi(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done && posted_ == chunk_.shard_elems;
}

void MpiGather::post() {
  const int count = static_cast<int>(std::min(chunk_.shard_elems - posted_, group_.count_limit));
  const std::int64_t offset = posted_ * size_of(chunk_.dtype);
  piece_.emplace(mpi_type(chunk_.dtype), count, chunk_.shard_bytes());
  const bool in_place = chunk_.shard == slot_ + group_.shard_of(group_.rank) * chunk_.shard_bytes();
  const void* from = in_place ? MPI_IN_PLACE : chunk_.shard + offset;
  const MPI_Datatype type = mpi_type(chunk_.dtype);
  if (group_.shards.empty()) {
    check_mpi(MPI_Iallgather(from, count, type, slot_ + offset, 1, piece_->get(), group_.comm, &request_),
              "MPI_Iallgather");
  } else {
    ones_.assign(group_.shards.size(), 1);
    check_mpi(MPI_Iallgatherv(from, count, type, slot_ + offset, ones_.data(), group_.shards.data(),
                              piece_->get(), group_.comm, &request_),
              "MPI_Iallgatherv");
  }
  posted_ += count;
}

PackedGather::PackedGather(const GatherGroup& group, const ShardedChunk& chunk, std::byte* slot,
                           const WireFormat& format, std::vector<std::byte>& staging,
                           std::int64_t staging_bytes)
    : group_(group), chunk_(chunk), slot_(slot), format_(format), staging_(staging) {
  constexpr std::int64_t kBlock = WireFormat::kBlock;
  const std::int64_t blocks = std::min(staging_bytes / group.ranks / format.bytes_for(kBlock),
                                       group.count_limit / format.count_for(kBlock));
  piece_elems_ = std::min(chunk.shard_elems, std::max<std::int64_t>(1, blocks) * kBlock);
}

bool PackedGather::poll() {
  if (request_ == MPI_REQUEST_NULL) post();
  int arrived = 0;
  check_mpi(MPI_Test(&request_, &arrived, MPI_STATUS_IGNORE), "MPI_Test");
  if (!arrived) return false;
  unpack();
  return done_ == chunk_.shard_elems;
}

void PackedGather::post() {
  count_ = std::min(piece_elems_, chunk_.shard_elems - done_);
  const auto needed = static_cast<std::size_t>(format_.bytes_for(count_) * group_.ranks);
  if (staging_.size() < needed) staging_.resize(needed);
  format_.pack(chunk_.shard + done_ * size_of(chunk_.dtype), count_,
               staging_.data() + group_.rank * format_.bytes_for(count_));
  check_mpi(MPI_Iallgather(MPI_IN_PLACE, 0, format_.type(), staging_.data(), format_.count_for(count_),
                           format_.type(), group_.comm, &request_),
            "MPI_Iallgather");
}

void PackedGather::unpack() {
  for (int rank = 0; rank < group_.ranks; ++rank)
    format_.unpack(staging_.data() + rank * format_.bytes_for(count_), count_,
                   slot_ + (group_.shard_of(rank) * chunk_.shard_elems + done_) * size_of(chunk_.dtype));
  done_ += count_;
}

}  // namespace gemini
