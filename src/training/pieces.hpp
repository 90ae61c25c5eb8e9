// This rank's shards, run by run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chunks/chunk_store.hpp"
#include "training/registry.hpp"

namespace gemini {

// A run of one parameter's elements in this rank's shard of its chunk.
struct OwnedPiece {
  Parameter& parameter;
  Chunk& chunk;
  std::int64_t first_elem, count_elems, offset;  // offset: in the shard, elements

  [[nodiscard]] std::byte* compute() const { return chunk.shard.data() + offset * size_of(chunk.spec.dtype); }
  [[nodiscard]] std::byte* master() const {
    return chunk.master_data() + offset * size_of(chunk.master_dtype());
  }
  [[nodiscard]] std::byte* grad_sum() const {
    return chunk.grad_sum.data() + offset * size_of(wide(chunk.spec.dtype));
  }
  // NULL where the optimizer has fewer.
  [[nodiscard]] std::byte* state(std::size_t which) const {
    return which < chunk.states.size() ? chunk.states[which].data() + offset * size_of(wide(chunk.spec.dtype))
                                       : nullptr;
  }
};

// visit(OwnedPiece) for every run in this rank's shard of the chunk, in order.
template <class Visit>
void for_each_piece(Registry& registry, Chunk& chunk, Visit&& visit) {
  for (const ShardPiece& piece : chunk.pieces)
    visit(OwnedPiece{registry[piece.tensor], chunk, piece.first_elem, piece.count_elems,
                     piece.offset_in_shard});
}

// visit(piece) for every piece of a trained parameter whose chunk holds a gradient.
template <class Visit>
void for_each_gradient(Registry& registry, ChunkStore& store, Visit&& visit) {
  for (Chunk& chunk : store.chunks()) {
    if (!chunk.grad_held) continue;
    for_each_piece(registry, chunk, [&](const OwnedPiece& piece) {
      if (piece.parameter.trained()) visit(piece);
    });
  }
}

}  // namespace gemini
