// How chunks travel between the ranks that share one copy of the model.
//
// A transport speaks of chunks and returns operations for the queue. Where a gathered chunk lies is the
// transport's choice: it may need a slot of ours, or show memory that is there already, which ranks then
// share: it says where shards and gradients are to lie, and hears when a shard was changed and when nobody
// here reads a chunk any more. Addresses are asked at each lease.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/dtype.hpp"
#include "collectives/comm_queue.hpp"
#include "memory/page_source.hpp"

namespace gemini {

// One rank's part of a chunk of `ranks` equal shards.
struct ShardedChunk {
  std::int64_t shard_elems;
  DType dtype;
  std::byte* shard;
  int index = 0;  // of the chunk
  [[nodiscard]] std::int64_t shard_bytes() const { return shard_elems * size_of(dtype); }
};

// A chunk's gradients, on their way into this rank's shard.
struct GradientReduction {
  std::int64_t shard_elems;
  DType dtype;                // of the gradients; sums are of wide(dtype)
  const std::byte* gradient;  // the whole chunk, NULL: this rank contributes zeros
  std::byte* sum;             // this rank's shard of the sum
  bool first;                 // true: sum = total / divisor, false: sum += total / divisor
  double divisor;
  bool from_slot = false;  // the buffer, of all ranks, is of gradient_pages()
};

struct WireCounters {
  std::int64_t gather_bytes = 0;  // sent by this rank
  std::int64_t reduce_bytes = 0;
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  [[nodiscard]] virtual const char* name() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;
  // Whether acquire() needs a slot of ranks() * shard_bytes even where the shard lies in compute memory.
  [[nodiscard]] virtual bool needs_slot() const = 0;
  // Makes all shards readable at view(chunk, slot). A shard staged in its own place of the slot is welcome:
  // chunk.shard == slot + rank * shard_bytes. NULL: they are readable already.
  virtual std::unique_ptr<Operation> acquire(const ShardedChunk& chunk, std::byte* slot) = 0;
  [[nodiscard]] virtual std::byte* view(const ShardedChunk& chunk, std::byte* slot) const = 0;
  // Contributions are added in rank order within a node, then node sums in order of their first rank.
  virtual std::unique_ptr<Operation> reduce(const GradientReduction& reduction) = 0;

  // Where shards in compute memory and gradients that will be reduced are to lie.
  virtual PageSource& shard_pages(int /*chunk*/) { return private_pages(); }
  virtual PageSource& gradient_pages() { return private_pages(); }
  // Slots, where ranks share them: each takes its part of one from compute memory. open: before acquire(),
  // close: after leave(); every rank calls in the same order.
  [[nodiscard]] virtual int ranks_per_slot() const { return 1; }
  virtual PageSource& open_slot(int /*chunk*/) { return private_pages(); }
  virtual PageSource& close_slot(int /*chunk*/) { return private_pages(); }
  // This rank has its part of the slot. Complete once all have, and none reads what was there before; NULL:
  // it is so.
  virtual std::unique_ptr<Operation> clear_slot(int /*chunk*/) { return nullptr; }

  // This rank's shard has new values; every rank says so equally often. No rank reads the chunk while it
  // changes: ranks agreed on that.
  virtual void publish(int /*chunk*/) {}
  // This rank reads the chunk no more until it acquires it again.
  virtual void leave(int /*chunk*/) {}
  // Complete once no rank reads the chunk; NULL: none does.
  virtual std::unique_ptr<Operation> vacate(int /*chunk*/) { return nullptr; }

  [[nodiscard]] virtual const WireCounters& wire() const { return wire_; }
  virtual void reset_wire() { wire_ = {}; }

 protected:
  WireCounters wire_;
};

// One rank: the shard is the chunk, wherever it lies; in a slot it was staged there.
std::unique_ptr<Transport> make_self_transport();

}  // namespace gemini
