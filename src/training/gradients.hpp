// Gradients of the micro-batch under way: whole buffers on this rank, then reductions into shards.
//
// A chunk's buffer opens with its first BACKWARD lease. When nothing of the chunk blocks any more it is
// reduced at once; what is still open when the micro-batch ends is reduced then, with what was written.
#pragma once

#include <cstdint>
#include <deque>

#include "chunks/chunk_store.hpp"
#include "training/micro_batches.hpp"
#include "training/registry.hpp"

namespace gemini {

struct ReductionRules {
  double divisor;     // ranks for the mean, 1 for the sum
  bool asynchronous;  // false: each is waited for at once
};

class Gradients {
 public:
  Gradients(Registry& registry, ChunkStore& store, Transport& transport, CommQueue& queue,
            const MicroBatches& micro_batches, ReductionRules rules);
  ~Gradients();
  Gradients(const Gradients&) = delete;
  Gradients& operator=(const Gradients&) = delete;

  // What opening the chunk's buffer asks of the budget.
  [[nodiscard]] std::int64_t bytes_to_open(const Chunk& chunk) const {
    return chunk.gradient == nullptr ? chunk.gradient_bytes() : 0;
  }
  // What reductions in flight, and what the end of the micro-batch gives back.
  [[nodiscard]] std::int64_t in_flight_bytes() const;
  [[nodiscard]] std::int64_t buffer_bytes() const;
  void open(Chunk& chunk);
  // RESIDENT chunks keep their buffer, since their operations may differ over ranks.
  void reserve(Chunk& chunk);
  // The parameter's part of the open buffer; see gemini_param_grad.
  std::byte* write(Parameter& parameter, std::int32_t* accumulate);

  // Counts of this micro-batch. Each says what happened to a trained parameter in a chunk.
  void forward_ended(Parameter& parameter);
  void backward_began(Parameter& parameter);
  void backward_ended(Parameter& parameter);
  void declared_ready(Parameter& parameter);
  [[nodiscard]] bool blocks(const Parameter& parameter) const;

  void reduce_if_due(Chunk& chunk);
  // Reduces a chunk with what was written so far.
  void reduce(Chunk& chunk);
  // Reduces whatever is open, and RESIDENT chunks in any case: their leases may differ over ranks.
  void reduce_open();
  // The same at the end of a micro-batch: its counts are forgotten.
  void finish_micro_batch();
  // Waits for one, the oldest; false if none is in flight.
  bool wait_oldest();
  void wait_all() {
    while (wait_oldest()) {
    }
  }
  // Forgets what was produced since the last step, written or reduced.
  void drop();
  void drop_held();
  // A reduced gradient of this parameter is in the shards.
  [[nodiscard]] bool holds(const Parameter& parameter) const;

  [[nodiscard]] std::int64_t reduces() const { return reduces_; }
  void reset_counters() { reduces_ = 0; }

 private:
  template <class Change>
  void change(Parameter& parameter, Change&& change);
  void zero_unwritten(const Chunk& chunk);
  void close(Chunk& chunk);

  struct InFlight {
    Ticket ticket;
    std::byte* buffer;  // given back when done; NULL: the chunk keeps it
    std::int64_t bytes;
  };
  // Enough to overlap one reduction with the backward of the next chunk. A fixed number: which buffers are
  // free must not depend on timing.
  static constexpr std::size_t kInFlight = 2;

  Registry& registry_;
  ChunkStore& store_;
  Transport& transport_;
  CommQueue& queue_;
  const MicroBatches& micro_batches_;
  ReductionRules rules_;
  std::deque<InFlight> in_flight_;
  std::int64_t holding_ = 1;  // number of the iteration whose gradients are held
  std::int64_t reduces_ = 0;
};

}  // namespace gemini
