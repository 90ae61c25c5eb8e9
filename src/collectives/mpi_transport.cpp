#include "collectives/mpi_transport.hpp"

#include "collectives/mpi_gather.hpp"

namespace gemini {

MpiTransport::MpiTransport(Communicator comm, Topology topology, std::int64_t count_limit, WireTypes types)
    : comm_(std::move(comm)),
      topology_(std::move(topology)),
      count_limit_(count_limit),
      types_(std::move(types)),
      reduction_room_(topology_, kStagingBytes, count_limit) {
  if (topology_.replicas() > 1)
    group_comm_ = Communicator::split(comm_, topology_.group, topology_.group_index);
}

std::unique_ptr<Operation> MpiTransport::acquire(const ShardedChunk& chunk, std::byte* slot) {
  if (slot == nullptr && ranks() == 1) return nullptr;  // the shard is the chunk
  const Communicator& comm = topology_.replicas() > 1 ? group_comm_ : comm_;
  return gather({comm.get(), topology_.group_index, ranks(), count_limit_}, chunk, slot);
}

std::unique_ptr<Operation> MpiTransport::gather(const GatherGroup& group, const ShardedChunk& chunk,
                                                std::byte* slot) {
  const WireFormat format(chunk.dtype, types_.gather);
  wire_.gather_bytes += format.bytes_for(chunk.shard_elems) * (group.ranks - 1);
  if (!format.converts() || group.ranks == 1) return std::make_unique<MpiGather>(group, chunk, slot);
  return std::make_unique<PackedGather>(group, chunk, slot, format, packed_, kStagingBytes);
}

std::unique_ptr<Operation> MpiTransport::reduce(const GradientReduction& reduction) {
  // Alone in its group a rank sends no gradients, only their sums.
  const WireFormat format(reduction.dtype, ranks() > 1 ? types_.reduce : "same");
  if (reduction.gradient != nullptr)
    wire_.reduce_bytes += format.bytes_for(reduction.shard_elems) * (ranks() - 1);
  wire_.reduce_bytes += reduction.shard_elems * size_of(wide(reduction.dtype)) * (topology_.replicas() - 1);
  return std::make_unique<MpiReduction>(comm_.get(), topology_, reduction_room_, reduction, format);
}

void MpiTransport::free_communicators() noexcept {
  group_comm_.free();
  comm_.free();
}

}  // namespace gemini
