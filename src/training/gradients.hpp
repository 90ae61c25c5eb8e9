// Gradients of the micro-batch under way: whole buffers on this rank, then reductions into shards.
//
// A chunk's buffer opens with its first BACKWARD lease. When nothing of the chunk blocks any more it is
// reduced at once; what is still open when the micro-batch ends is reduced then, with what was written. With
// `accumulate_mode = local` buffers are added up on this rank instead, and reduced in the last micro-batch.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "chunks/chunk_store.hpp"
#include "training/micro_batches.hpp"
#include "training/registry.hpp"

namespace gemini {

struct ReductionRules {
  double divisor;     // ranks for the mean, 1 for the sum
  bool asynchronous;  // false: each is waited for at once
  bool local;         // keep whole gradients over the micro-batches
};

class Gradients {
 public:
  // Makes room in compute memory for that many bytes.
  using MakeRoom = std::function<void(std::int64_t bytes)>;
  // A chunk's buffer was opened, or is done with.
  using Watch = std::function<void(int chunk, bool opened)>;

  Gradients(Registry& registry, ChunkStore& store, Transport& transport, CommQueue& queue,
            const MicroBatches& micro_batches, ReductionRules rules);
  ~Gradients();
  Gradients(const Gradients&) = delete;
  Gradients& operator=(const Gradients&) = delete;
  void set_make_room(MakeRoom make_room) { make_room_ = std::move(make_room); }
  void set_watch(Watch watch) { watch_ = std::move(watch); }

  // What opening the chunk's buffer asks of compute memory.
  [[nodiscard]] std::int64_t bytes_to_open(const Chunk& chunk) const {
    return chunk.gradient != nullptr ? 0 : bytes_when_open(chunk);
  }
  [[nodiscard]] static std::int64_t bytes_when_open(const Chunk& chunk);
  // What reductions in flight, and what the end of the micro-batch gives back.
  [[nodiscard]] std::int64_t in_flight_bytes() const { return in_flight_bytes_; }
  [[nodiscard]] std::int64_t buffer_bytes() const;
  [[nodiscard]] static std::int64_t buffer_bytes(const Chunk& chunk);
  // What must be free of compute memory, for one chunk at a time, to reduce all that is open or kept.
  [[nodiscard]] std::int64_t bytes_to_finish() const;
  void open(Chunk& chunk);
  // RESIDENT chunks keep their buffer, since their operations may differ over ranks.
  void reserve(Chunk& chunk);
  // The buffer goes to a lower tier and frees compute memory. Its next lease brings it back.
  void move_down(Chunk& chunk, Place to);
  // The parameter's part of the open buffer; see gemini_param_grad.
  std::byte* write(Parameter& parameter, std::int32_t* accumulate);

  // Counts of this micro-batch. Each says what happened to a trained parameter in a chunk.
  void forward_ended(Parameter& parameter);
  void backward_began(Parameter& parameter);
  void backward_ended(Parameter& parameter);
  void declared_ready(Parameter& parameter);
  [[nodiscard]] bool blocks(const Parameter& parameter) const;

  // last: no further micro-batch comes before the step.
  void reduce_if_due(Chunk& chunk, bool last);
  // Reduces whatever is open, and RESIDENT chunks in any case: their leases may differ over ranks.
  void reduce_open(bool last);
  // accumulate_mode = local: reduces what this rank keeps of earlier micro-batches.
  void reduce_all_kept();
  // reduce_open() at the end of a micro-batch: its counts are forgotten.
  void finish_micro_batch(bool last);
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
  // One that is not reduced yet is kept: accumulate_mode = local.
  [[nodiscard]] bool keeps(const Parameter& parameter) const;

  [[nodiscard]] std::int64_t reduces() const { return reduces_; }
  void reset_counters() { reduces_ = 0; }

 private:
  template <class Change>
  void change(Parameter& parameter, Change&& change);
  [[nodiscard]] static bool lands(const Chunk& chunk);
  void bring_back(Chunk& chunk);
  void end_buffer(Chunk& chunk, bool last);
  void keep(Chunk& chunk, bool mine);
  void reduce_kept(Chunk& chunk);
  void reduce(Chunk& chunk, DType dtype, const std::byte* gradient, std::byte* buffer);
  void prepare_landing(Chunk& chunk);
  [[nodiscard]] bool is_in_flight(const Chunk& chunk) const;
  void zero_unwritten(const Chunk& chunk);
  [[nodiscard]] bool written(const Chunk& chunk) const;
  // Leases on RESIDENT parameters may differ over ranks; there the chunk decides.
  [[nodiscard]] bool of_this_iteration(const Parameter& parameter) const {
    return parameter.resident || parameter.grad_held_in == holding_;
  }
  void close(Chunk& chunk);
  void give_gradient(Chunk& chunk);

  struct InFlight {
    Chunk* chunk;
    Ticket ticket;
    std::byte* buffer;   // given back when done; NULL: the chunk keeps it
    std::byte* landing;  // the sum, on its way to a file
    std::int64_t bytes;  // of both, as compute memory counts them
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
  MakeRoom make_room_ = [](std::int64_t) {};
  Watch watch_ = [](int, bool) {};
  std::deque<InFlight> in_flight_;
  std::int64_t in_flight_bytes_ = 0;
  std::int64_t holding_ = 1;  // number of the iteration whose gradients are held
  std::int64_t reduces_ = 0;
};

}  // namespace gemini
