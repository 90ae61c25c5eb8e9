#include "training/staged_piece.hpp"

#include <cstring>

#include "kernels/kernels.hpp"

namespace gemini {

void visit_piece(const OwnedPiece& piece, bool held, double grad_factor, gemini_shard_fn fn, void* user) {
  const Chunk& chunk = piece.chunk();
  const DType type = wide(chunk.spec.dtype);
  const std::int64_t bytes = piece.count_elems * size_of(type);
  const bool staged_master = chunk.master_dtype() != type;
  std::vector<std::byte> master_copy(static_cast<std::size_t>(staged_master ? bytes : 0));
  std::byte* master = piece.master();
  if (staged_master) {
    kernels::convert(chunk.master_dtype(), master, type, master_copy.data(), piece.count_elems);
    master = master_copy.data();
  }
  std::vector<std::byte> gradient_copy;
  const std::byte* gradient = held ? piece.at(Item::grad_sum) : nullptr;
  if (held && grad_factor != 1.0) {
    gradient_copy.assign(gradient, gradient + bytes);
    kernels::scale(type, gradient_copy.data(), piece.count_elems, grad_factor);
    gradient = gradient_copy.data();
  }
  Parameter& p = piece.parameter;
  const int code =
      fn(user, &p, piece.first_elem, piece.count_elems, master, gradient,
         p.trained() ? piece.at(Item::state1) : nullptr, p.trained() ? piece.at(Item::state2) : nullptr);
  if (code != 0)
    fail(GEMINI_ERR_CALLBACK, "the shard function returned {} for \"{}\" at element {}", code, p.name,
         piece.first_elem);
  if (staged_master) kernels::convert(type, master, chunk.master_dtype(), piece.master(), piece.count_elems);
  if (chunk.has_master())
    kernels::convert(type, master, chunk.spec.dtype, piece.at(Item::param), piece.count_elems);
}

}  // namespace gemini
