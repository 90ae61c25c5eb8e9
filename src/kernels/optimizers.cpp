#include "kernels/optimizers.hpp"

#include "kernels/launch.hpp"
#include "kernels/piece.hpp"
#include "kernels/update_rules.hpp"

namespace gemini::kernels {
namespace {

template <class Master, class Rule>
struct Update {
  using W = Wide<Master>;
  Master* master;
  const W* grad;
  W* state1;
  W* state2;
  W grad_factor;
  Rule rule;

  KOKKOS_FORCEINLINE_FUNCTION W updated(std::int64_t i) const {
    const W g = grad[i] * grad_factor;
    W first = W(0), second = W(0);
    if constexpr (Rule::kStates >= 1) first = state1[i];
    if constexpr (Rule::kStates >= 2) second = state2[i];
    const W w = rule(widen(master[i]), g, first, second);
    if constexpr (Rule::kStates >= 1) state1[i] = first;
    if constexpr (Rule::kStates >= 2) state2[i] = second;
    master[i] = convert_to<Master>(w);
    return w;
  }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void arrays(const Visit& visit) const {
    visit(master), visit(grad);
    if constexpr (Rule::kStates >= 1) visit(state1);
    if constexpr (Rule::kStates >= 2) visit(state2);
  }
};

template <template <class> class Rule>
void run_rule(const Hyper& hyper, std::int64_t step, const Piece& piece) {
  with_floating(piece.master_type, [&](auto tag) {
    using Master = typename decltype(tag)::type;
    using W = Wide<Master>;
    const Rule<W> rule(hyper, step);
    check_piece(piece, step, Rule<W>::kStates);
    update_piece<Master>(
        piece, Update<Master, Rule<W>>{static_cast<Master*>(piece.master), static_cast<const W*>(piece.grad),
                                       static_cast<W*>(piece.state1), static_cast<W*>(piece.state2),
                                       static_cast<W>(piece.grad_factor), rule});
  });
}

}  // namespace

int state_count(Optimizer optimizer, double momentum) {
  switch (optimizer) {
    case Optimizer::adamw:
    case Optimizer::adam:
    case Optimizer::lamb: return 2;
    case Optimizer::lion: return 1;
    case Optimizer::sgd: return momentum != 0.0 ? 1 : 0;
  }
  fail(GEMINI_ERR_INTERNAL, "no optimizer has the number {}", static_cast<int>(optimizer));
}

void update(Optimizer optimizer, const Hyper& hyper, std::int64_t step, const Piece& piece) {
  switch (optimizer) {
    case Optimizer::adamw: return run_rule<AdamWRule>(hyper, step, piece);
    case Optimizer::adam: return run_rule<AdamRule>(hyper, step, piece);
    case Optimizer::lion: return run_rule<LionRule>(hyper, step, piece);
    case Optimizer::sgd:
      if (state_count(optimizer, hyper.momentum) == 0) return run_rule<PlainSgdRule>(hyper, step, piece);
      return run_rule<MomentumSgdRule>(hyper, step, piece);
    case Optimizer::lamb: break;
  }
  fail(GEMINI_ERR_INTERNAL, "update() does not know optimizer {}", static_cast<int>(optimizer));
}

}  // namespace gemini::kernels
