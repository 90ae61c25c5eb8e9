// This rank's part of every chunk: shards, state and the gathered copies of the moment.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "chunks/layout.hpp"
#include "chunks/tensor_state.hpp"
#include "collectives/transport.hpp"
#include "memory/tier.hpp"

namespace gemini {

struct Chunk {
  ChunkSpec spec;
  int index = 0;
  std::vector<ShardPiece> pieces;  // what this rank's shard holds

  // Shards: spec.shard_elems each. state arrays and sums are of wide(dtype).
  Block shard;     // what operations compute with
  Block master;    // empty: the shard is its own master
  Block grad_sum;  // empty: no tensor of the chunk is trained
  std::vector<Block> states;

  std::byte* slot = nullptr;  // of the gathered copy, where the transport needs one
  bool gathered = false;
  std::byte* gradient = nullptr;  // this rank's whole gradient
  bool gradient_open = false;     // it may be written
  Ticket reduction = 0;           // the last one
  bool grad_held = false;         // grad_sum holds a reduced gradient since the last step

  int leases = 0;
  int blocking = 0;            // trained tensors whose gradient of this micro-batch is not due yet
  std::int64_t seen_in = 0;    // number of the operation that last named it
  std::int64_t opened_in = 0;  // and that last opened its gradient
  std::array<int, kTensorStates> tensors_in{};
  std::uint64_t checksum = 0;  // of the gathered copy, debug builds
  bool write_told = false;     // that it was written to

  [[nodiscard]] bool trained() const { return static_cast<bool>(grad_sum); }
  [[nodiscard]] DType master_dtype() const { return master ? wide(spec.dtype) : spec.dtype; }
  [[nodiscard]] std::byte* master_data() const { return master ? master.data() : shard.data(); }
  [[nodiscard]] std::int64_t gathered_bytes() const { return spec.elems * size_of(spec.dtype); }
  [[nodiscard]] std::int64_t gradient_bytes() const { return spec.elems * size_of(spec.grad_dtype); }
  [[nodiscard]] ShardedChunk sharded() const { return {spec.shard_elems, spec.dtype, shard.data()}; }
};

// What a chunk keeps beside its shard.
struct TrainingState {
  bool master;  // F32 copy of 16-bit values
  int states;   // arrays of the optimizer
};

class ChunkStore {
 public:
  ChunkStore(const std::vector<TensorSpec>& tensors, Layout layout, int rank, Tier& tier,
             Transport& transport, CommQueue& queue);
  ~ChunkStore();

  // Bytes that shards of this layout, their training state and what is always gathered will occupy.
  static std::int64_t bytes_needed(const Layout& layout, const TrainingState& state, bool needs_slot);
  static std::int64_t training_bytes(const ChunkSpec& spec, const TrainingState& state);
  // Adds gradient sum, master (filled from the shard) and state arrays to a chunk that has none.
  void add_training_state(Chunk& chunk, const TrainingState& state);
  void set_state_count(Chunk& chunk, int states);

  // All-gathers the chunks in this order and waits. What they need must fit: see slot_bytes.
  void gather(const std::vector<int>& chunks);
  // Gathers a chunk again whose shards changed.
  void refresh(const std::vector<int>& chunks);
  void release(int chunk);
  [[nodiscard]] std::byte* gathered(const Chunk& chunk) const {
    return transport_.view(chunk.sharded(), chunk.slot);
  }
  // What gathering this chunk asks of the budget.
  [[nodiscard]] std::int64_t slot_bytes(const Chunk& chunk) const;
  // Debug builds: throws, once, if the gathered copy is not what was gathered.
  void check_unwritten(Chunk& chunk);

  [[nodiscard]] std::vector<Chunk>& chunks() { return chunks_; }
  [[nodiscard]] const std::vector<Chunk>& chunks() const { return chunks_; }
  [[nodiscard]] Chunk& operator[](int chunk) { return chunks_[static_cast<std::size_t>(chunk)]; }
  [[nodiscard]] const Chunk& operator[](int chunk) const { return chunks_[static_cast<std::size_t>(chunk)]; }
  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] int ranks() const { return transport_.ranks(); }
  [[nodiscard]] Tier& tier() const { return tier_; }

  struct Counters {
    std::int64_t gathers = 0, gathered_bytes = 0, gathered_peak_bytes = 0;
  };
  [[nodiscard]] const Counters& counters() const { return counters_; }
  void reset_counters();
  struct Bytes {
    std::int64_t param = 0, grad = 0, optimizer = 0;
  };
  [[nodiscard]] Bytes shard_bytes() const;

 private:
  void take_slots(const std::vector<int>& chunks);
  void acquire(const std::vector<int>& chunks);

  Layout layout_;
  Tier& tier_;
  Transport& transport_;
  CommQueue& queue_;
  std::vector<Chunk> chunks_;
  Counters counters_;
};

}  // namespace gemini
