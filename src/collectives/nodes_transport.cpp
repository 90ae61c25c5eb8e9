#include "collectives/nodes_transport.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace gemini {
namespace {

// Position of this rank on its node.
int index_on_node(const Topology& topology) {
  const std::vector<int>& ranks = topology.nodes[static_cast<std::size_t>(topology.node())];
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), topology.rank) - ranks.begin());
}

// The ranks at this rank's position on every node.
std::vector<int> rail_of(const Topology& topology) {
  std::vector<int> ranks;
  for (const std::vector<int>& node : topology.nodes)
    ranks.push_back(node[static_cast<std::size_t>(index_on_node(topology))]);
  return ranks;
}

SharedNode::Seat seat_of(const Topology& topology) {
  return {static_cast<int>(topology.nodes.size()), topology.node(), index_on_node(topology),
          topology.node_ranks(), SharedNode::Shows::chunk};
}

// Waits for its turn in the slot, gathers along the rail, and waits for the other ranks of the node.
class NodeGather final : public Operation {
 public:
  NodeGather(std::unique_ptr<Operation> clear, std::unique_ptr<Operation> gather,
             SharedSegment::Counter& mine, std::uint32_t number, std::unique_ptr<Operation> others)
      : clear_(std::move(clear)),
        gather_(std::move(gather)),
        mine_(mine),
        number_(number),
        others_(std::move(others)) {}

  bool poll() override {
    if (clear_ && !clear_->poll()) return false;
    clear_.reset();
    if (gather_) {
      if (!gather_->poll()) return false;
      gather_.reset();
      mine_.store(number_, std::memory_order_release);
    }
    return others_->poll();
  }

 private:
  std::unique_ptr<Operation> clear_, gather_;
  SharedSegment::Counter& mine_;
  std::uint32_t number_;
  std::unique_ptr<Operation> others_;
};

}  // namespace

bool NodesTransport::possible(const Topology& topology) {
  const std::size_t ranks = topology.nodes.front().size();
  return topology.replicas() == 1 && topology.nodes.size() > 1 && ranks > 1 &&
         std::all_of(topology.nodes.begin(), topology.nodes.end(),
                     [&](const std::vector<int>& node) { return node.size() == ranks; });
}

NodesTransport::NodesTransport(std::unique_ptr<MpiTransport> mpi, const Topology& topology)
    : NodeTransport(std::move(mpi), seat_of(topology),
                    {rail_of(topology), topology.node(), rail_of(topology), MPI_COMM_NULL},
                    {topology.node_ranks(), static_cast<int>(topology.nodes.size()),
                     MpiTransport::kStagingBytes, INT_MAX}),
      rail_(Communicator::split(this->mpi().comm(), index_on_node(topology), topology.node())),
      shards_of_rail_(rail_of(topology)) {}

std::string NodesTransport::share(Agreement& agreement, const std::vector<SharedChunk>& chunks) {
  std::vector<SharedChunk> slots = chunks;
  bytes_.clear();
  free_.clear();
  for (SharedChunk& slot : slots) {
    slot.in_memory = false;
    bytes_.push_back(slot.bytes);
  }
  gathered_.assign(chunks.size(), 0);
  slot_of_.assign(chunks.size(), -1);
  for (int c = static_cast<int>(chunks.size()) - 1; c >= 0; --c)
    free_[bytes_[static_cast<std::size_t>(c)]].push_back(c);
  return NodeTransport::share(agreement, slots);
}

std::unique_ptr<Operation> NodesTransport::acquire(const ShardedChunk& chunk, std::byte* slot) {
  if (!node_) return TransportOver::acquire(chunk, slot);
  const int place = place_of(chunk.index);
  const std::uint32_t number = ++gathered_[static_cast<std::size_t>(place)];
  const GatherGroup group{rail_.get(), rail_.rank(), rail_.size(), mpi().count_limit(), shards_of_rail_};
  const SharedSegment& segment = node_.segment();
  return std::make_unique<NodeGather>(
      clear_slot(chunk.index), mpi().gather(group, chunk, slot), segment.version(place, node_.me()), number,
      std::make_unique<CounterWait>(&segment.version(place, 0), node_.ranks(), number));
}

PageSource& NodesTransport::open_slot(int chunk) {
  if (!node_) return private_pages();
  std::vector<int>& free = free_[bytes_[static_cast<std::size_t>(chunk)]];
  ensure(!free.empty(), "there are as many places of a size as chunks");
  slot_of_[static_cast<std::size_t>(chunk)] = free.back();
  free.pop_back();
  PartPages& pages = node_.part(place_of(chunk));
  pages.occupy();
  return pages;
}

PageSource& NodesTransport::close_slot(int chunk) {
  if (!node_) return private_pages();
  const int place = std::exchange(slot_of_[static_cast<std::size_t>(chunk)], -1);
  free_[bytes_[static_cast<std::size_t>(chunk)]].push_back(place);
  return node_.part(place);
}

// Shards of a rail lie in parts of other ranks: these must have left what was there, and may not give the
// memory behind it back any more.
std::unique_ptr<Operation> NodesTransport::clear_slot(int chunk) {
  if (!node_) return nullptr;
  const int place = place_of(chunk);
  const std::uint32_t number = node_.part(place).occupied();
  node_.segment().opened(place, node_.me()).store(number, std::memory_order_release);
  return std::make_unique<CounterWait>(&node_.segment().opened(place, 0), node_.ranks(), number);
}

void NodesTransport::leave(int chunk) {
  if (!node_) return;
  const int place = place_of(chunk);
  node_.segment().left(place, node_.me()).store(node_.part(place).occupied(), std::memory_order_release);
}

}  // namespace gemini
