// The loop over this rank's shards that a step ends with.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/kernels.hpp"
#include "training/pieces.hpp"
#include "training/staged_piece.hpp"
#include "training/step.hpp"

namespace gemini {
namespace {

kernels::Piece kernel_piece(const OwnedPiece& piece, double grad_factor) {
  const Chunk& chunk = piece.chunk();
  return {
      piece.count_elems,        chunk.master_dtype(), piece.master(),
      piece.at(Item::grad_sum), grad_factor,          piece.at(Item::state1),
      piece.at(Item::state2),   chunk.spec.dtype,     chunk.has_master() ? piece.at(Item::param) : nullptr};
}

kernels::Hyper hyper_of(const Parameter& p, const StepSettings& settings) {
  kernels::Hyper hyper = settings.hyper;
  hyper.lr *= p.lr_scale;
  if (p.weight_decay) hyper.weight_decay = *p.weight_decay;
  return hyper;
}

// visit(piece) for every piece whose parameter is updated.
template <class Visit>
void for_each_updated(const Shards& shards, const StepVerdict& verdict, Items reads, Items writes,
                      Visit&& visit) {
  for_each_gradient(shards, reads, writes, [&](const OwnedPiece& piece) {
    if (verdict.produced[static_cast<std::size_t>(piece.parameter.index)]) visit(piece);
  });
}

constexpr Items kAll = kValues | kStates | set_of(Item::grad_sum);

double trust_ratio(const ExactSum& weight_squares, const ExactSum& update_squares) {
  const double w = std::sqrt(weight_squares.value());
  const double r = std::sqrt(update_squares.value());
  return w > 0 && r > 0 ? w / r : 1.0;
}

// LAMB scales each parameter's update by a ratio of norms over all its shards.
void update_lamb(Ranks& ranks, const Shards& shards, const Update& update) {
  const std::size_t count = shards.registry.all().size();
  std::vector<ExactSum> weights(count);
  std::vector<ExactSum> updates(count);
  for_each_updated(shards, update.verdict, kAll, kStates, [&](const OwnedPiece& piece) {
    const auto p = static_cast<std::size_t>(piece.parameter.index);
    kernels::lamb_moments(hyper_of(piece.parameter, update.settings), piece.parameter.step_count,
                          kernel_piece(piece, update.grad_factor), weights[p], updates[p]);
  });
  add_over_shards(ranks, weights, "the norms of LAMB");
  add_over_shards(ranks, updates, "the norms of LAMB");
  for_each_updated(shards, update.verdict, kAll, kValues, [&](const OwnedPiece& piece) {
    kernels::lamb_apply(hyper_of(piece.parameter, update.settings), piece.parameter.step_count,
                        trust_ratio(weights[static_cast<std::size_t>(piece.parameter.index)],
                                    updates[static_cast<std::size_t>(piece.parameter.index)]),
                        kernel_piece(piece, update.grad_factor));
  });
}

void unscale_in_place(const OwnedPiece& piece, double factor) {
  if (factor != 1.0)
    kernels::scale(wide(piece.chunk().spec.dtype), piece.at(Item::grad_sum), piece.count_elems, factor);
}

}  // namespace

void apply_update(Ranks& ranks, const Shards& shards, const Update& update) {
  const StepSettings& settings = update.settings;
  if (settings.kind != UpdateKind::none)
    for (Parameter& p : shards.registry.all())
      if (p.trained() && update.verdict.produced[static_cast<std::size_t>(p.index)]) ++p.step_count;
  if (settings.kind == UpdateKind::builtin && settings.optimizer == kernels::Optimizer::lamb) {
    update_lamb(ranks, shards, update);
    return;
  }
  const bool values_change = settings.kind != UpdateKind::none;
  const Items reads = values_change ? kAll : set_of(Item::grad_sum);
  Items writes = values_change ? kValues | kStates : 0;
  if (settings.kind != UpdateKind::builtin) writes |= set_of(Item::grad_sum);  // unscaled in place
  for_each_updated(shards, update.verdict, reads, writes, [&](const OwnedPiece& piece) {
    switch (settings.kind) {
      case UpdateKind::builtin:
        kernels::update(settings.optimizer, hyper_of(piece.parameter, settings), piece.parameter.step_count,
                        kernel_piece(piece, update.grad_factor));
        break;
      case UpdateKind::custom:
        unscale_in_place(piece, update.grad_factor);
        visit_piece(piece, true, 1.0, update.custom.function, update.custom.user);
        break;
      case UpdateKind::none: unscale_in_place(piece, update.grad_factor); break;
    }
  });
}

}  // namespace gemini
