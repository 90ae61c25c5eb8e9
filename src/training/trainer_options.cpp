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
  const bool open =
      chunk.spec.resident ? micro_batches_.forward_ends_one() : chunk.gradient_open && p.grad_touched;
  if (!gradients_.holds(p) && !open)
    fail(GEMINI_ERR_STATE,
         "no gradient of \"{}\" is held; ask between its BACKWARD operation and gemini_step", p.name);
}

void Trainer::check_apply(const Parameter& p, const ParamOption& option) const {
  check_between_steps();
  if (option.key == ParamOption::Key::grad_dtype)
    fail(GEMINI_ERR_STATE, "grad_dtype of \"{}\" is fixed at gemini_commit", p.name);
  if (option.key != ParamOption::Key::frozen || option.number != 0 || !p.frozen || p.chunk < 0) return;
  const Chunk& chunk = store_[p.chunk];
  if (!chunk.trained())
    store_.tier().require(ChunkStore::training_bytes(chunk.spec, training_state()),
                          "gradient and optimizer state");
}

void Trainer::apply(Parameter& p, const ParamOption& option, const Options& options) {
  const bool unfrozen = option.key == ParamOption::Key::frozen && option.number == 0 && p.frozen;
  apply_param_option(p, option);
  if (!unfrozen) return;
  p.step_count = 0;
  if (p.dtype == DType::f16 && !loss_scale_.is_dynamic()) loss_scale_ = make_loss_scale(options, true);
  if (p.chunk < 0) return;
  Chunk& chunk = store_[p.chunk];
  if (!chunk.trained()) start_training(chunk);
  for_each_piece(registry_, chunk, [&](const OwnedPiece& piece) {
    if (&piece.parameter != &p) return;
    for (std::size_t s = 0; s < chunk.states.size(); ++s)
      kernels::fill(wide(chunk.spec.dtype), piece.state(s), piece.count_elems, 0.0);
  });
}

void Trainer::check_change(const Options& options) const {
  check_between_steps();
  const int more = StepSettings(options).states - settings_.states;
  if (more <= 0) return;
  std::int64_t bytes = 0;
  for (const Chunk& chunk : store_.chunks())
    if (chunk.trained())
      bytes += more * Tier::rounded(chunk.spec.shard_elems * size_of(wide(chunk.spec.dtype)));
  store_.tier().require(bytes, "optimizer state");
}

void Trainer::change_settings(const Options& options, const std::string& key) {
  settings_ = StepSettings(options);
  for (Chunk& chunk : store_.chunks())
    if (chunk.trained()) store_.set_state_count(chunk, settings_.states);
  if (key == "loss_scale" || key == "initial_scale")
    loss_scale_ = make_loss_scale(options, registry_.trains_f16());
  loss_scale_.apply(settings_.scale_rules);
}

}  // namespace gemini
