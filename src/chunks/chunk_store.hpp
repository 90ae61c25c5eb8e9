// This rank's part of every chunk: shards, state and the gathered copies of the moment.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/timeline.hpp"
#include "chunks/chunk_status.hpp"
#include "chunks/layout.hpp"
#include "chunks/shard_item.hpp"
#include "chunks/tensor_state.hpp"
#include "collectives/transport.hpp"
#include "memory/stored.hpp"

namespace gemini {

struct Chunk {
  ChunkSpec spec;
  int index = 0;
  std::vector<ShardPiece> pieces;  // what this rank's shard holds

  // The shard: spec.shard_elems each, states and sums of wide(dtype). No master: the shard is its own. No
  // sum: no tensor of the chunk is trained.
  std::array<Stored, kItems> items;

  ChunkStatus* status = nullptr;  // in the store's table
  std::byte* slot = nullptr;      // of the gathered copy, unless the shard is the copy
  Ticket arrival = 0;             // of the gather under way

  std::byte* gradient = nullptr;  // this rank's whole gradient
  Stored moved_gradient;          // the same in a lower tier
  std::byte* landing = nullptr;   // where the sum is formed, if it rests in a file
  Stored kept;                    // accumulate_mode = local: the whole sum of this rank, of wide(dtype)
  bool kept_written = false;      // something was added to it
  bool kept_pending = false;      // it must be reduced before the step
  Ticket reduction = 0;           // the last one
  bool grad_held = false;         // grad_sum holds a reduced gradient since the last step

  int blocking = 0;            // trained tensors whose gradient of this micro-batch is not due yet
  std::int64_t seen_in = 0;    // number of the operation that last named it
  std::int64_t opened_in = 0;  // and that last opened its gradient
  std::array<int, kTensorStates> tensors_in{};
  std::uint64_t checksum = 0;  // of the gathered copy, debug builds
  bool write_told = false;     // that it was written to

  [[nodiscard]] Stored& item(Item which) { return items[static_cast<std::size_t>(which)]; }
  [[nodiscard]] const Stored& item(Item which) const { return items[static_cast<std::size_t>(which)]; }
  [[nodiscard]] bool trained() const { return static_cast<bool>(item(Item::grad_sum)); }
  [[nodiscard]] bool has_master() const { return static_cast<bool>(item(Item::master)); }
  [[nodiscard]] Item master_item() const { return has_master() ? Item::master : Item::param; }
  [[nodiscard]] DType dtype_of(Item which) const {
    return which == Item::param ? spec.dtype : wide(spec.dtype);
  }
  [[nodiscard]] DType master_dtype() const { return dtype_of(master_item()); }
  [[nodiscard]] std::int64_t gathered_bytes() const { return spec.elems * size_of(spec.dtype); }
  [[nodiscard]] std::int64_t gradient_bytes() const { return spec.elems * size_of(spec.grad_dtype); }
  [[nodiscard]] std::int64_t sum_bytes() const { return spec.shard_elems * size_of(wide(spec.dtype)); }
};

// What a chunk keeps beside its shard.
struct TrainingState {
  bool master;  // F32 copy of 16-bit values
  int states;   // arrays of the optimizer
};

// Bytes of an item in a chunk's shard, page-rounded; 0: it has none.
std::int64_t item_bytes(const ChunkSpec& spec, Item item, const TrainingState& state);
// What a RESIDENT chunk always holds in compute memory: its copy, and its gradient, since its operations may
// differ over ranks.
std::int64_t resident_bytes(const ChunkSpec& spec, bool needs_slot, int ranks_per_slot);
// What a gathered chunk takes of this rank's memory.
std::int64_t own_slot_bytes(const ChunkSpec& spec, int ranks_per_slot);

using HomeOf = std::function<Place(int chunk, Item item)>;

class ChunkStore {
 public:
  // rank: index of the shard that this rank keeps of every chunk.
  ChunkStore(const std::vector<TensorSpec>& tensors, Layout layout, int rank, Tiers& tiers,
             Transport& transport, CommQueue& queue, const HomeOf& home);
  ~ChunkStore();
  ChunkStore(const ChunkStore&) = delete;
  ChunkStore& operator=(const ChunkStore&) = delete;

  // NULL: nothing is recorded.
  void record_to(Timeline* timeline) { timeline_ = timeline; }
  [[nodiscard]] Timeline* timeline() const { return timeline_; }

  // Adds gradient sum, master (filled from the shard) and state arrays to a chunk that has none.
  void add_training_state(Chunk& chunk, const TrainingState& state, const HomeOf& home);
  void set_state_count(Chunk& chunk, int states, const HomeOf& home);
  // Waits for ranks that still read a shard of parameters.
  void move(Chunk& chunk, Item item, Place to);
  // Buffers of whole gradients, in compute memory.
  std::byte* take_gradient_slot(const Chunk& chunk);
  void give_gradient_slot(const Chunk& chunk, std::byte* slot) noexcept;

  // Starts a gather; what it needs must fit: see slot_bytes. ahead: of the operation that needs it.
  void fetch(Chunk& chunk, bool ahead = false);
  // Waits until the chunk's copy is here.
  void await(Chunk& chunk);
  void gather(Chunk& chunk) {
    fetch(chunk);
    await(chunk);
  }
  // This rank's shard of the chunk has new values.
  void publish(const Chunk& chunk) { transport_.publish(chunk.index); }
  // Starts to gather a present chunk again whose shards changed.
  void refresh(Chunk& chunk);
  void release(Chunk& chunk);
  [[nodiscard]] std::byte* gathered(const Chunk& chunk) const;
  // What gathering this chunk asks of compute memory.
  [[nodiscard]] std::int64_t slot_bytes(const Chunk& chunk) const;
  // Debug builds: throws, once, if the gathered copy is not what was gathered.
  void check_unwritten(Chunk& chunk);

  [[nodiscard]] std::vector<Chunk>& chunks() { return chunks_; }
  [[nodiscard]] const std::vector<Chunk>& chunks() const { return chunks_; }
  [[nodiscard]] Chunk& operator[](int chunk) { return chunks_[static_cast<std::size_t>(chunk)]; }
  [[nodiscard]] const Chunk& operator[](int chunk) const { return chunks_[static_cast<std::size_t>(chunk)]; }
  [[nodiscard]] const std::vector<ChunkStatus>& statuses() const { return statuses_; }
  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] Tiers& tiers() const { return tiers_; }
  [[nodiscard]] Tier& compute() const { return tiers_.compute; }

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
  [[nodiscard]] ShardedChunk sharded(const Chunk& chunk) const;
  [[nodiscard]] std::unique_ptr<Operation> gather_operation(Chunk& chunk);
  void take_gather_ticket(Chunk& chunk, bool ahead);
  void give_slot(Chunk& chunk) noexcept;

  Layout layout_;
  int rank_;
  Tiers& tiers_;
  Transport& transport_;
  CommQueue& queue_;
  Timeline* timeline_ = nullptr;
  std::vector<Chunk> chunks_;
  std::vector<ChunkStatus> statuses_;
  Counters counters_;
};

}  // namespace gemini
