#pragma once

#include "base/error.hpp"
#include "chunks/chunk_store.hpp"
#include "training/parameter.hpp"

namespace gemini {

// Changes a tensor's state by the table, and the chunk's counts with it.
inline void move_tensor(Chunk& chunk, Parameter& p, TensorState to) {
  if (p.state == to) return;
  if (!transition_allowed(p.state, to))
    fail(GEMINI_ERR_INTERNAL, "\"{}\" may not go from {} to {}", p.name, name_of(p.state), name_of(to));
  --chunk.tensors_in[static_cast<std::size_t>(p.state)];
  ++chunk.tensors_in[static_cast<std::size_t>(to)];
  p.state = to;
}

}  // namespace gemini
