// Measures how long chunks travel, for plans of when to start.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "collectives/transport_over.hpp"

namespace gemini {

class TimedTransport final : public TransportOver {
 public:
  using TransportOver::TransportOver;

  std::unique_ptr<Operation> acquire(const ShardedChunk& chunk, std::byte* slot) override;
  std::unique_ptr<Operation> reduce(const GradientReduction& reduction) override;

  // Mean time of this rank's operations since the last call, from their turn in the queue to their end, per
  // byte of the whole chunk. 0: there were none.
  double take_gather_ns_per_byte() { return take(gathers_); }
  double take_reduce_ns_per_byte() { return take(reductions_); }

  // Operations complete on the communication's worker.
  struct Sum {
    std::atomic<std::int64_t> bytes{0}, ns{0};
  };

 private:
  static double take(Sum& sum);

  Sum gathers_, reductions_;
};

}  // namespace gemini
