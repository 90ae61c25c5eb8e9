// Trainer: what may be changed between steps, and the checks before it.
#include "kernels/kernels.hpp"
#include "training/pieces.hpp"
#include "training/trainer.hpp"

namespace gemini {

void Trainer::check_between_steps() const {
  operations_.check_no_leases();
  if (!micro_batches_.idle())
    fail(GEMINI_ERR_STATE, "a micro-batch is open; gemini_step or gemini_discard first");
}

void Trainer::check_gradient_held(const Parameter& p) const {
  if (!p.trained())
    fail(GEMINI_ERR_ARGUMENT, "parameter \"{}\" is {}: it has no gradient", p.name,
         p.ignored ? "IGNORED" : "FROZEN");
  if (p.chunk < 0) return;
  const Chunk& chunk = store_[p.chunk];
  const bool open = chunk.spec.resident
                        ? micro_batches_.forward_ends_one()
                        : (chunk.status->gradient_open || chunk.moved_gradient) && p.grad_touched;
  if (!gradients_.holds(p) && !gradients_.keeps(p) && !open)
    fail(GEMINI_ERR_STATE,
         "no gradient of \"{}\" is held; ask between its BACKWARD operation and gemini_step", p.name);
  check_finish();
}

// Arrays that come after commit go as near as there is room, the same on all ranks. Throws if there is none,
// or if this rank's workspaces are in the way.
std::vector<Place> Trainer::places_for(std::int64_t arrays, std::int64_t bytes) const {
  const std::int64_t size = whole_pages(bytes);
  std::int64_t compute = 0;
  Rooms below = residency_.rooms_below();
  std::vector<Place> places;
  for (std::int64_t i = 0; i < arrays; ++i) {
    Place place = Place::compute;
    if (tiers_.compute.fits(compute + size))
      compute += size;
    else if (!put_below(below, size, place))
      tiers_.compute.require(compute + size, "gradient and optimizer state");
    places.push_back(place);
  }
  tiers_.compute.require(compute, "gradient and optimizer state");
  return places;
}

namespace {

// Hands out places one after the other.
HomeOf in_turn(std::vector<Place> places) {
  return [places = std::move(places), next = std::size_t{0}](int, Item) mutable { return places[next++]; };
}

}  // namespace

std::int64_t Trainer::arrays_of(const Chunk& chunk) const {
  return 1 + settings_.states + (keep_masters_ && is_16bit(chunk.spec.dtype) ? 1 : 0);
}

void Trainer::check_apply(const Parameter& p, const ParamOption& option) const {
  check_between_steps();
  if (option.key == ParamOption::Key::grad_dtype)
    fail(GEMINI_ERR_STATE, "grad_dtype of \"{}\" is fixed at gemini_commit", p.name);
  if (option.key != ParamOption::Key::frozen || option.number != 0 || !p.frozen || p.chunk < 0) return;
  const Chunk& chunk = store_[p.chunk];
  if (!chunk.trained()) static_cast<void>(places_for(arrays_of(chunk), chunk.sum_bytes()));
}

void Trainer::apply(Parameter& p, const ParamOption& option, const Options& options) {
  const bool unfrozen = option.key == ParamOption::Key::frozen && option.number == 0 && p.frozen;
  apply_param_option(p, option);
  if (!unfrozen) return;
  p.step_count = 0;
  if (p.dtype == DType::f16 && !loss_scale_.is_dynamic()) loss_scale_ = make_loss_scale(options, true);
  if (p.chunk < 0) return;
  Chunk& chunk = store_[p.chunk];
  if (!chunk.trained()) {
    start_training(chunk, in_turn(places_for(arrays_of(chunk), chunk.sum_bytes())));
    return;
  }
  for_each_piece(
      shards(), kStates, kStates, [&](const Chunk& other) { return other.index == chunk.index; },
      [&](const OwnedPiece& piece) {
        if (&piece.parameter != &p) return;
        for (const Item state : {Item::state1, Item::state2})
          if (piece.at(state) != nullptr)
            kernels::fill(wide(chunk.spec.dtype), piece.at(state), piece.count_elems, 0.0);
      });
}

void Trainer::check_change(const Options& options) const {
  check_between_steps();
  const int more = StepSettings(options).states - settings_.states;
  if (more <= 0) return;
  std::int64_t bytes = 0;
  for (const Chunk& chunk : store_.chunks())
    if (chunk.trained()) bytes += more * whole_pages(chunk.sum_bytes());
  tiers_.compute.require(bytes, "optimizer state");
}

void Trainer::change_settings(const Options& options, const std::string& key) {
  settings_ = StepSettings(options);
  for (Chunk& chunk : store_.chunks())
    if (chunk.trained())
      store_.set_state_count(chunk, settings_.states, [](int, Item) { return Place::compute; });
  if (key == "loss_scale" || key == "initial_scale")
    loss_scale_ = make_loss_scale(options, registry_.trains_f16());
  loss_scale_.apply(settings_.scale_rules);
}

}  // namespace gemini
