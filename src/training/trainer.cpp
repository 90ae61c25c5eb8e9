#include "training/trainer.hpp"

#include "kernels/kernels.hpp"
#include "training/initialise.hpp"
#include "training/staged_piece.hpp"
#include "training/value_check.hpp"

namespace gemini {
namespace {

LayoutRules layout_rules(const Options& options, int ranks) {
  LayoutRules rules;
  rules.ranks = ranks;
  rules.chunk_elems = options.integer("chunk_elems");
  rules.search_min_elems = options.integer("chunk_search_min_elems");
  rules.search_max_elems = options.integer("chunk_search_max_elems");
  return rules;
}

Layout layout_of(const Options& options, const Ranks& ranks, const Registry& registry) {
  return make_layout(registry.tensors(), layout_rules(options, ranks.transport().ranks()));
}

ReductionRules reduction_rules(const Options& options, int ranks) {
  return {options.text("reduce_op") == "mean" ? static_cast<double>(ranks) : 1.0,
          options.flag("async_reduce")};
}

}  // namespace

void Trainer::check(const Options& options, const Ranks& ranks, const Registry& registry, const Tier& tier) {
  for (const Parameter& p : registry.all())
    if (!p.ignored && p.initialiser.kind == Initialiser::Kind::none)
      fail(GEMINI_ERR_STATE, "parameter \"{}\" has no initialiser; call one of gemini_param_init_*", p.name);
  const TrainingState state{options.flag("master_weights"), StepSettings(options).states};
  const Layout layout = layout_of(options, ranks, registry);
  tier.require(ChunkStore::bytes_needed(layout, state, ranks.transport().needs_slot()),
               "the shards of this model");
}

Trainer::Trainer(const Options& options, Ranks& ranks, Registry& registry, Tier& tier)
    : ranks_(ranks),
      registry_(registry),
      settings_(options),
      keep_masters_(options.flag("master_weights")),
      store_(registry.tensors(), layout_of(options, ranks, registry), ranks.group_index(), tier,
             ranks.transport(), ranks.queue()),
      gradients_(registry, store_, ranks.transport(), ranks.queue(), micro_batches_,
                 reduction_rules(options, ranks.topology().ranks)),
      operations_(store_, registry, gradients_, micro_batches_, ranks.agreement()),
      loss_scale_(make_loss_scale(options, registry.trains_f16())) {
  for (Parameter& p : registry.all()) {
    const TensorPlace place = store_.layout().places[static_cast<std::size_t>(p.index)];
    p.chunk = place.chunk;
    p.offset = place.offset;
    if (p.chunk >= 0) p.state = TensorState::hold;
  }
  for (Chunk& chunk : store_.chunks())
    if (!chunk.spec.frozen) start_training(chunk);
  if (options.text("check") != "off")
    ranks.agreement().check_order([&registry](int param) { return registry[param].name; });
}

void Trainer::start_training(Chunk& chunk) {
  store_.add_training_state(chunk, training_state());
  if (chunk.spec.resident) gradients_.reserve(chunk);
}

void Trainer::draw_initial_values() {
  initialise_own_ranges(registry_, store_);
}

void Trainer::spread_initial_values() {
  initialise_from_data(ranks_, registry_, store_);
  store_.gather(resident_chunks());
}

void Trainer::check_initial_values() {
  check_finite(ranks_, registry_, store_);
  check_same_copies(ranks_, registry_, store_, resident_chunks());
}

std::vector<int> Trainer::resident_chunks() const {
  std::vector<int> resident;
  for (std::size_t c = 0; c < store_.layout().chunks.size(); ++c)
    if (store_.layout().chunks[c].resident) resident.push_back(static_cast<int>(c));
  return resident;
}

void Trainer::refresh_resident() {
  store_.refresh(resident_chunks());
}

void Trainer::check_step() const {
  operations_.check_no_leases();
  micro_batches_.check_step(settings_.accumulate);
  if (settings_.kind == UpdateKind::custom && custom_update_.function == nullptr)
    fail(GEMINI_ERR_STATE, "optimizer = custom has no update; gemini_set_update first");
}

gemini_step_info_t Trainer::step(double lr) {
  if (micro_batches_.forward_ends_one()) gradients_.finish_micro_batch();
  gradients_.wait_all();
  const double scale = loss_scale_.value();
  const StepVerdict verdict = exchange_step(ranks_, registry_, store_, settings_.infinity_norm, scale);
  const bool skipped = !verdict.finite && settings_.skip_nonfinite;
  loss_scale_.update(!verdict.finite, settings_.scale_rules);
  settings_.hyper.lr = lr;

  gemini_step_info_t info = GEMINI_STEP_INFO_INIT;
  if (!skipped) {
    const double factor = clip_factor(verdict.grad_norm, settings_.max_grad_norm) / scale;
    const Update update{settings_, verdict, factor, custom_update_};
    if (settings_.kind == UpdateKind::custom)  // the caller's function may fail on one rank alone
      ranks_.agreement().act_and_agree(Call::step, [&] { apply_update(ranks_, registry_, store_, update); });
    else
      apply_update(ranks_, registry_, store_, update);
    for (const bool produced : verdict.produced) info.params_updated += produced ? 1 : 0;
    if (settings_.kind != UpdateKind::none) refresh_resident();
  }
  if (skipped || settings_.kind != UpdateKind::none) gradients_.drop_held();
  for (Parameter& p : registry_.all()) p.grad_produced = false;
  micro_batches_.restart();
  ++(skipped ? skipped_ : steps_);

  info.step = steps_;
  info.skipped = skipped ? 1 : 0;
  info.grad_norm = verdict.grad_norm;
  info.loss_scale = scale;
  info.lr = lr;
  return info;
}

void Trainer::discard() {
  gradients_.drop();
  micro_batches_.restart();
}

void Trainer::finish_open_gradients() {
  if (micro_batches_.forward_ends_one()) gradients_.reduce_open();
  gradients_.wait_all();
}

void Trainer::read(Parameter& p, ValueKind kind, DType as, std::byte* to, int root) {
  if (kind == ValueKind::gradient) finish_open_gradients();
  if (p.chunk < 0) return;
  read_values(ranks_, store_[p.chunk], p, kind, unscaling(), as, to, root);
}

void Trainer::write(Parameter& p, DType type, const std::byte* from, int root) {
  if (p.chunk < 0) return;
  write_values(ranks_, store_[p.chunk], p, type, from, root);
  if (store_[p.chunk].spec.resident) store_.refresh({p.chunk});
}

void Trainer::visit_shards(gemini_shard_fn fn, void* user) {
  finish_open_gradients();
  for (Chunk& chunk : store_.chunks())
    for_each_piece(registry_, chunk, [&](const OwnedPiece& piece) {
      visit_piece(piece, gradients_.holds(piece.parameter), unscaling(), fn, user);
    });
}

void Trainer::reset_counters() {
  store_.reset_counters();
  gradients_.reset_counters();
  steps_at_reset_ = steps_;
  skipped_ = 0;
}

}  // namespace gemini
