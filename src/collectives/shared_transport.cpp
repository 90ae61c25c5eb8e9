#include "collectives/shared_transport.hpp"

#include <algorithm>
#include <utility>

namespace gemini {
namespace {

SharedNode::Seat seat_of(const Topology& topology) {
  return {static_cast<int>(topology.groups.size()), topology.group, topology.group_index,
          topology.group_ranks(), SharedNode::Shows::part};
}

// Sums of this rank's shard, over the groups.
SumRoute route_of(const Topology& topology) {
  return {topology.owners(topology.group_index), topology.group,
          std::vector<int>(topology.groups.size(), topology.group_index), MPI_COMM_NULL};
}

}  // namespace

bool SharedTransport::possible(const Topology& topology) {
  if (topology.group_ranks() == 1) return false;
  return std::all_of(topology.groups.begin(), topology.groups.end(), [&](const std::vector<int>& group) {
    return std::all_of(group.begin(), group.end(), [&](int rank) {
      return topology.node_of[static_cast<std::size_t>(rank)] ==
             topology.node_of[static_cast<std::size_t>(group.front())];
    });
  });
}

SharedTransport::SharedTransport(std::unique_ptr<MpiTransport> mpi, const Topology& topology)
    : NodeTransport(std::move(mpi), seat_of(topology), route_of(topology),
                    {topology.group_ranks(), topology.replicas(), MpiTransport::kStagingBytes, INT_MAX}) {}

std::string SharedTransport::share(Agreement& agreement, const std::vector<SharedChunk>& chunks) {
  published_.assign(chunks.size(), 0);
  left_.assign(chunks.size(), 0);
  return NodeTransport::share(agreement, chunks);
}

std::unique_ptr<Operation> SharedTransport::acquire(const ShardedChunk& chunk, std::byte* slot) {
  if (slot != nullptr || !node_) return TransportOver::acquire(chunk, slot);
  return std::make_unique<CounterWait>(&node_.segment().version(chunk.index, 0), ranks(),
                                       published_[static_cast<std::size_t>(chunk.index)]);
}

std::byte* SharedTransport::view(const ShardedChunk& chunk, std::byte* slot) const {
  if (slot != nullptr || !node_) return TransportOver::view(chunk, slot);
  return node_.chunk(chunk.index);
}

PageSource& SharedTransport::shard_pages(int chunk) {
  return node_ ? node_.part(chunk) : private_pages();
}

void SharedTransport::publish(int chunk) {
  if (node_)
    node_.segment()
        .version(chunk, node_.me())
        .store(++published_[static_cast<std::size_t>(chunk)], std::memory_order_release);
}

void SharedTransport::leave(int chunk) {
  if (node_)
    node_.segment()
        .left(chunk, node_.me())
        .store(++left_[static_cast<std::size_t>(chunk)], std::memory_order_release);
}

std::unique_ptr<Operation> SharedTransport::vacate(int chunk) {
  if (!node_) return nullptr;
  return std::make_unique<CounterWait>(&node_.segment().left(chunk, 0), ranks(),
                                       left_[static_cast<std::size_t>(chunk)]);
}

}  // namespace gemini
