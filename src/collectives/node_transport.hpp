// What transports over a node's shared memory have in common: the segment, and gradients that peers on the
// node read where they were written.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/mpi_transport.hpp"
#include "collectives/shared_node.hpp"
#include "collectives/shared_reduction.hpp"
#include "collectives/transport_over.hpp"

namespace gemini {

class NodeTransport : public TransportOver {
 public:
  // Shares memory if every rank can; every rank calls, with the same chunks. Why not, or "".
  virtual std::string share(Agreement& agreement, const std::vector<SharedChunk>& chunks) {
    return node_.share(agreement, chunks);
  }
  [[nodiscard]] bool declined() const { return node_.declined(); }

  [[nodiscard]] const char* name() const override { return declined() ? TransportOver::name() : "shared"; }
  // The buffer is handed over at once; what the queue does in its turn is to add.
  std::unique_ptr<Operation> reduce(const GradientReduction& reduction) override;
  PageSource& gradient_pages() override { return node_ ? node_.gradients() : private_pages(); }

 protected:
  NodeTransport(std::unique_ptr<MpiTransport> mpi, const SharedNode::Seat& seat, SumRoute route,
                ReductionRoom room);
  [[nodiscard]] MpiTransport& mpi() const { return *mpi_; }

  SharedNode node_;

 private:
  MpiTransport* mpi_;  // what this is over
  SumRoute route_;
  ReductionRoom room_;
};

}  // namespace gemini
