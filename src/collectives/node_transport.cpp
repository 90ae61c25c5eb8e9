#include "collectives/node_transport.hpp"

#include <utility>

namespace gemini {

NodeTransport::NodeTransport(std::unique_ptr<MpiTransport> mpi, const SharedNode::Seat& seat, SumRoute route,
                             ReductionRoom room)
    : TransportOver(std::move(mpi)),
      node_(seat),
      mpi_(static_cast<MpiTransport*>(&real())),
      route_(std::move(route)),
      room_(std::move(room)) {
  route_.comm = mpi_->comm().get();
}

std::unique_ptr<Operation> NodeTransport::reduce(const GradientReduction& reduction) {
  if (!reduction.from_slot || !node_) return TransportOver::reduce(reduction);
  const std::uint32_t number = node_.hand_over(reduction.gradient);
  const auto peers = static_cast<std::int64_t>(route_.peers.size()) - 1;
  mpi_->count_sent({0, reduction.shard_elems * size_of(wide(reduction.dtype)) * peers});
  return std::make_unique<SharedReduction>(route_, room_, node_, reduction, number);
}

}  // namespace gemini
