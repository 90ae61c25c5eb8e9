// What the optimizer kernels share: choosing types for a Piece and storing a new master value with its copy.
#pragma once

#include "kernels/convert.hpp"
#include "kernels/kernels.hpp"
#include "kernels/optimizers.hpp"

namespace gemini::kernels {

template <class Master>
struct NoCopy {
  KOKKOS_INLINE_FUNCTION void store(std::int64_t, Master) const {}
};

template <class Master, class Copy>
struct CopyTo {
  Copy* to;
  KOKKOS_INLINE_FUNCTION void store(std::int64_t i, Master value) const { to[i] = convert_to<Copy>(value); }
};

// Calls run(copy) with the storer of the compute copy. The usual pair, a float master with a 16-bit copy, is
// written in the same pass; others are converted afterwards.
template <class Master, class Run>
void with_copy(const Piece& piece, const Run& run) {
  if constexpr (std::is_same_v<Master, float>) {
    if (piece.compute_copy != nullptr && piece.compute_type == DType::f16) {
      return run(CopyTo<float, Half>{static_cast<Half*>(piece.compute_copy)});
    }
    if (piece.compute_copy != nullptr && piece.compute_type == DType::bf16) {
      return run(CopyTo<float, BFloat16>{static_cast<BFloat16*>(piece.compute_copy)});
    }
  }
  run(NoCopy<Master>{});
  if (piece.compute_copy != nullptr) {
    convert(piece.master_type, piece.master, piece.compute_type, piece.compute_copy, piece.count);
  }
}

inline void check_piece(const Piece& piece, std::int64_t step, int states) {
  ensure(step >= 1, "the count of updates includes this one");
  ensure(piece.count <= 0 || piece.master != nullptr, "a piece has a master");
  ensure(piece.count <= 0 || states < 1 || piece.state1 != nullptr, "a piece has its first state");
  ensure(piece.count <= 0 || states < 2 || piece.state2 != nullptr, "a piece has its second state");
}

}  // namespace gemini::kernels
