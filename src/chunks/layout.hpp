// How parameters are packed into chunks: a pure function of the registration, equal on all ranks.
//
// Tensors go into chunks in registration order, one group of chunks per (dtype, gradient dtype, frozen,
// resident). Chunks of a group are of one size; a tensor larger than that has a chunk of its own. Each
// chunk is cut into `ranks` equal shards.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.hpp"

namespace gemini {

struct TensorSpec {
  std::int64_t elems;
  DType dtype;
  DType grad_dtype;
  bool frozen;
  bool resident;
};

struct LayoutRules {
  int ranks = 1;
  std::int64_t align_bytes = 64;  // of each tensor and each shard
  std::int64_t chunk_elems = 0;   // 0: search
  std::int64_t search_min_elems = 65536;
  std::int64_t search_max_elems = 8388608;
};

struct ChunkSpec {
  DType dtype;
  DType grad_dtype;
  bool frozen;
  bool resident;
  std::int64_t elems;        // padding included
  std::int64_t shard_elems;  // elems / ranks
  std::vector<int> tensors;  // in order of their offset
};

struct TensorPlace {
  int chunk = -1;  // -1: no elements, no chunk
  std::int64_t offset = 0;
};

struct Layout {
  std::vector<ChunkSpec> chunks;
  std::vector<TensorPlace> places;  // by tensor
  std::int64_t chunk_elems = 0;     // the largest regular chunk
  std::int64_t padding_elems = 0;
};

Layout make_layout(const std::vector<TensorSpec>& tensors, const LayoutRules& rules);

// A run of one tensor's elements inside one shard.
struct ShardPiece {
  int tensor;
  std::int64_t first_elem;  // of the tensor, row-major
  std::int64_t count_elems;
  std::int64_t offset_in_shard;  // elements
};

// What of a chunk the shard of `rank` holds; checkpoints and plans are made from it.
std::vector<ShardPiece> pieces_of_shard(const Layout& layout, const std::vector<TensorSpec>& tensors,
                                        int chunk, int rank);

}  // namespace gemini
