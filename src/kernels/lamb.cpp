// LAMB in two passes: the step of an element depends on norms over its whole parameter.
#include "kernels/launch.hpp"
#include "kernels/optimizers.hpp"
#include "kernels/piece.hpp"
#include "kernels/square_bins.hpp"
#include "kernels/update_rules.hpp"

namespace gemini::kernels {
namespace {

template <class W>
struct UpdateMoments {
  const W* grad;
  W* m;
  W* v;
  W grad_factor;
  Moments<W> moments;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t i) const {
    W first = m[i], second = v[i];
    moments(grad[i] * grad_factor, first, second);
    m[i] = first;
    v[i] = second;
  }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void arrays(const Visit& visit) const {
    visit(grad), visit(m), visit(v);
  }
};

// r of element i, formed from the moments as often as it is needed: keeping it would cost a third state
template <class Master>
struct UpdateOf {
  using W = Wide<Master>;
  const Master* master;
  const W* m;
  const W* v;
  LambUpdate<W> rule;

  KOKKOS_FORCEINLINE_FUNCTION W operator()(std::int64_t i) const {
    return rule(widen(master[i]), m[i], v[i]);
  }
};

template <class Master>
struct Apply {
  using W = Wide<Master>;
  Master* master;
  UpdateOf<Master> update;
  W step_size;

  KOKKOS_FORCEINLINE_FUNCTION W updated(std::int64_t i) const {
    const W w = widen(master[i]) - step_size * update(i);
    master[i] = convert_to<Master>(w);
    return w;
  }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void arrays(const Visit& visit) const {
    visit(master), visit(update.m), visit(update.v);
  }
};

template <class Master>
UpdateOf<Master> update_of(const Hyper& hyper, std::int64_t step, const Piece& piece) {
  using W = Wide<Master>;
  return {static_cast<const Master*>(piece.master), static_cast<const W*>(piece.state1),
          static_cast<const W*>(piece.state2), LambUpdate<W>(hyper, step)};
}

}  // namespace

void lamb_moments(const Hyper& hyper, std::int64_t step, const Piece& piece, ExactSum& weight_squares,
                  ExactSum& update_squares) {
  check_piece(piece, step, 2);
  with_floating(piece.master_type, [&](auto tag) {
    using Master = typename decltype(tag)::type;
    using W = Wide<Master>;
    for_each(piece.count, UpdateMoments<W>{static_cast<const W*>(piece.grad), static_cast<W*>(piece.state1),
                                           static_cast<W*>(piece.state2), static_cast<W>(piece.grad_factor),
                                           Moments<W>(hyper)});
    add_squares(piece.master_type, piece.master, piece.count, weight_squares);
    add_squares_of<W>(piece.count, update_of<Master>(hyper, step, piece), update_squares);
  });
}

void lamb_apply(const Hyper& hyper, std::int64_t step, double ratio, const Piece& piece) {
  check_piece(piece, step, 2);
  with_floating(piece.master_type, [&](auto tag) {
    using Master = typename decltype(tag)::type;
    update_piece<Master>(
        piece, Apply<Master>{static_cast<Master*>(piece.master), update_of<Master>(hyper, step, piece),
                             static_cast<Wide<Master>>(hyper.lr * ratio)});
  });
}

}  // namespace gemini::kernels
