// Shows a piece of a shard to a caller's function in wide arithmetic, staged where it is not kept so.
#pragma once

#include "training/pieces.hpp"

namespace gemini {

// Calls fn with master, gradient (times grad_factor; NULL unless held) and states; writes the values back and
// refreshes the compute copy. Throws GEMINI_ERR_CALLBACK if fn returns nonzero.
void visit_piece(const OwnedPiece& piece, bool held, double grad_factor, gemini_shard_fn fn, void* user);

}  // namespace gemini
