// Values of whole parameters between the caller's memory and the shards of all ranks.
#pragma once

#include <cstdint>

#include "chunks/chunk_store.hpp"
#include "collectives/ranks.hpp"
#include "training/parameter.hpp"

namespace gemini {

enum class ValueKind { master, gradient };

// Every rank calls. to: elems values of `as` on root (-1: every rank). Gradients are multiplied by factor.
void read_values(Ranks& ranks, Tiers& tiers, const Chunk& chunk, const Parameter& parameter, ValueKind kind,
                 double factor, DType as, std::byte* to, int root);

// Every rank calls. from: elems values of `type` on root (-1: every rank its own). Writes master and compute
// copy.
void write_values(Ranks& ranks, Tiers& tiers, Chunk& chunk, const Parameter& parameter, DType type,
                  const std::byte* from, int root);

// count values of `type` into elements [offset, ...) of this rank's shard: master and compute copy.
void store_values(Tiers& tiers, Chunk& chunk, std::int64_t offset, std::int64_t count, DType type,
                  const std::byte* from);

}  // namespace gemini
