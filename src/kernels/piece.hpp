// What the optimizer kernels share: checking a Piece, and the copy of its new master values.
#pragma once

#include "kernels/convert.hpp"
#include "kernels/kernels.hpp"
#include "kernels/launch.hpp"
#include "kernels/optimizers.hpp"

namespace gemini::kernels {

// An update that writes the compute copy too: update.updated(i) changes the master and returns its new value.
template <class Update, class Copy>
struct UpdateWithCopy {
  Update update;
  Copy* to;
  KOKKOS_FORCEINLINE_FUNCTION Copy* output() const { return to; }
  KOKKOS_FORCEINLINE_FUNCTION Copy value(std::int64_t i) const { return convert_to<Copy>(update.updated(i)); }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void arrays(const Visit& visit) const {
    update.arrays(visit);
  }
};

template <class Update>
struct UpdateAlone {
  Update update;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t i) const { update.updated(i); }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void arrays(const Visit& visit) const {
    update.arrays(visit);
  }
};

template <class Copy, class Update>
void update_with_copy(const Piece& piece, const Update& update) {
  for_each_output(piece.count, UpdateWithCopy<Update, Copy>{update, static_cast<Copy*>(piece.compute_copy)});
}

// The usual pair, a float master with a 16-bit copy, is written in one pass; other copies are converted
// afterwards.
template <class Master, class Update>
void update_piece(const Piece& piece, const Update& update) {
  const bool copied = piece.compute_copy != nullptr;
  if constexpr (std::is_same_v<Master, float>) {
    if (copied && piece.compute_type == DType::f16) return update_with_copy<Half>(piece, update);
    if (copied && piece.compute_type == DType::bf16) return update_with_copy<BFloat16>(piece, update);
  }
  for_each(piece.count, UpdateAlone<Update>{update});
  if (copied) convert(piece.master_type, piece.master, piece.compute_type, piece.compute_copy, piece.count);
}

inline void check_piece(const Piece& piece, std::int64_t step, int states) {
  ensure(step >= 1, "the count of updates includes this one");
  ensure(piece.count <= 0 || piece.master != nullptr, "a piece has a master");
  ensure(piece.count <= 0 || states < 1 || piece.state1 != nullptr, "a piece has its first state");
  ensure(piece.count <= 0 || states < 2 || piece.state2 != nullptr, "a piece has its second state");
}

}  // namespace gemini::kernels
