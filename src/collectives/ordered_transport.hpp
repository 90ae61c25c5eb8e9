// Data moves only after ranks agreed that they made the same calls.
#pragma once

#include "collectives/agreement.hpp"
#include "collectives/transport_over.hpp"

namespace gemini {

class OrderedTransport final : public TransportOver {
 public:
  OrderedTransport(std::unique_ptr<Transport> real, Agreement& agreement)
      : TransportOver(std::move(real)), agreement_(agreement) {}

  std::unique_ptr<Operation> acquire(const ShardedChunk& chunk, std::byte* slot) override {
    agreement_.confirm();
    return TransportOver::acquire(chunk, slot);
  }
  std::unique_ptr<Operation> reduce(const GradientReduction& reduction) override {
    agreement_.confirm();
    return TransportOver::reduce(reduction);
  }

 private:
  Agreement& agreement_;
};

}  // namespace gemini
