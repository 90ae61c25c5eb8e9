// This rank's shards, run by run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chunks/chunk_store.hpp"
#include "chunks/shard_windows.hpp"
#include "training/registry.hpp"

namespace gemini {

// A run of one parameter's elements in this rank's shard of its chunk, as a window shows it.
struct OwnedPiece {
  Parameter& parameter;
  const ShardWindow& window;
  std::int64_t first_elem, count_elems, offset;  // offset: in the shard, elements

  [[nodiscard]] const Chunk& chunk() const { return *window.chunk; }
  // NULL where the pass does not touch the array or the shard has none.
  [[nodiscard]] std::byte* at(Item item) const {
    std::byte* data = window.at[static_cast<std::size_t>(item)];
    return data == nullptr ? nullptr : data + (offset - window.first) * size_of(chunk().dtype_of(item));
  }
  [[nodiscard]] std::byte* master() const { return at(chunk().master_item()); }
};

// The shards of a context and how they are passed over.
struct Shards {
  Registry& registry;
  ChunkStore& store;
  const Staging& staging;
};

// visit(OwnedPiece) for every run in the window, in order.
template <class Visit>
void for_each_piece(Registry& registry, const ShardWindow& window, Visit&& visit) {
  for (const ShardPiece& piece : window.chunk->pieces) {
    const std::int64_t begin = std::max(piece.offset_in_shard, window.first);
    const std::int64_t end = std::min(piece.offset_in_shard + piece.count_elems, window.first + window.count);
    if (begin < end)
      visit(OwnedPiece{registry[piece.tensor], window, piece.first_elem + begin - piece.offset_in_shard,
                       end - begin, begin});
  }
}

// The same for all chunks that wanted(chunk) wants; reads and writes: what the visit does with the arrays.
// Peers may read a shard's new values once its last window is done.
template <class Wanted, class Visit>
void for_each_piece(const Shards& shards, Items reads, Items writes, Wanted&& wanted, Visit&& visit) {
  ShardPass pass(shards.store.tiers(), shards.staging, reads, writes);
  for (Chunk& chunk : shards.store.chunks())
    if (wanted(chunk)) pass.add(chunk);
  for (ShardWindow window; pass.next(window);) {
    for_each_piece(shards.registry, window, visit);
    if ((writes & kValues) != 0 && window.first + window.count == window.chunk->spec.shard_elems)
      shards.store.publish(*window.chunk);
  }
}

// visit(piece) for every piece of a trained parameter whose chunk holds a gradient.
template <class Visit>
void for_each_gradient(const Shards& shards, Items reads, Items writes, Visit&& visit) {
  for_each_piece(
      shards, reads, writes, [](const Chunk& chunk) { return chunk.grad_held; },
      [&](const OwnedPiece& piece) {
        if (piece.parameter.trained()) visit(piece);
      });
}

}  // namespace gemini
