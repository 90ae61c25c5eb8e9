#include "training/trainer.hpp"

#include <cmath>

#include "kernels/kernels.hpp"
#include "training/initialise.hpp"
#include "training/must.hpp"
#include "training/rehome.hpp"
#include "training/staged_piece.hpp"
#include "training/value_check.hpp"

namespace gemini {
namespace {

constexpr double kRateUnit = 1e6;  // ranks agree on whole numbers

ReductionRules reduction_rules(const Options& options, int ranks) {
  return {options.text("reduce_op") == "mean" ? static_cast<double>(ranks) : 1.0,
          options.flag("async_reduce"), options.text("accumulate_mode") == "local"};
}

Budget budget_of(const Options& options, const Tier& compute) {
  const bool adapts = options.text("placement") != "static";
  return {compute.limit(), adapts ? options.real("device_memory_fraction") : 1.0};
}

std::unique_ptr<Policy> make_policy(const Options& options, const std::vector<ChunkFacts>& facts,
                                    const Budget& budget, const Rates* rates) {
  PolicyRules rules;
  rules.budget = budget;
  rules.prefetch = options.text("prefetch") == "auto" ? -1 : static_cast<int>(options.integer("prefetch"));
  rules.keep_share = 1 - options.real("shard_param_frac");
  if (options.text("placement") == "static") return make_static_policy(facts, rules);
  if (options.text("placement") == "planned") return make_planned_policy(facts, rules, rates);
  return make_auto_policy(facts, rules);
}

}  // namespace

ModelPlan Trainer::plan(const Options& options, const Ranks& ranks, const Registry& registry,
                        const Tiers& tiers) {
  for (const Parameter& p : registry.all())
    if (!p.ignored && p.initialiser.kind == Initialiser::Kind::none)
      fail(GEMINI_ERR_STATE, "parameter \"{}\" has no initialiser; call one of gemini_param_init_*", p.name);
  ModelLimits limits;
  limits.shard_ranks = ranks.transport().ranks();
  limits.needs_slot = ranks.transport().needs_slot();
  limits.ranks_per_slot = ranks.transport().ranks_per_slot();
  limits.compute_bytes = tiers.compute.limit();
  limits.host_bytes = tiers.host.limit();
  limits.files = tiers.files != nullptr;
  return make_model_plan(options, registry, limits);
}

Trainer::Trainer(const Options& options, Ranks& ranks, Registry& registry, ModelPlan plan, Tiers& tiers,
                 NonModelMemory& non_model)
    : ranks_(ranks),
      registry_(registry),
      tiers_(tiers),
      non_model_(non_model),
      settings_(options),
      keep_masters_(options.flag("master_weights")),
      adapts_(options.text("placement") != "static"),
      budget_(budget_of(options, tiers.compute)),
      fixed_bytes_(plan.fixed_bytes),
      kept_place_(plan.kept),
      keeps_gradients_(plan.kept_bytes > 0),
      store_(registry.tensors(), plan.layout, ranks.group_index(), tiers, ranks.transport(), ranks.queue(),
             [&](int chunk, Item item) { return plan.home(chunk, item); }),
      gradients_(registry, store_, ranks.transport(), ranks.queue(), micro_batches_,
                 reduction_rules(options, ranks.topology().ranks)),
      residency_(store_, gradients_, budget_, ranks.transport().ranks()),
      policy_(make_policy(options, residency_.facts(), budget_, &rates_)),
      inference_policy_(make_policy(options, residency_.facts(), budget_, &rates_)),
      operations_(store_, registry, gradients_, micro_batches_, residency_, non_model, ranks.agreement()),
      loss_scale_(make_loss_scale(options, registry.trains_f16())) {
  if (plan.window_elems > 0) staging_ = Staging(tiers.host, plan.window_elems);
  residency_.set_policies(policy_.get(), inference_policy_.get());
  for (Parameter& p : registry.all()) {
    const TensorPlace place = store_.layout().places[static_cast<std::size_t>(p.index)];
    p.chunk = place.chunk;
    p.offset = place.offset;
    if (p.chunk >= 0) p.state = TensorState::hold;
  }
  for (Chunk& chunk : store_.chunks())
    if (!chunk.spec.frozen)
      start_training(chunk, [&](int index, Item item) { return plan.home(index, item); });
  if (options.text("check") != "off")
    ranks.agreement().check_order([&registry](int param) { return registry[param].name; });
}

void Trainer::start_training(Chunk& chunk, const HomeOf& home) {
  store_.add_training_state(chunk, training_state(), home);
  if (chunk.spec.resident) gradients_.reserve(chunk);
  if (keeps_gradients_)
    chunk.kept = Stored(tiers_, kept_place_, chunk.spec.elems * size_of(wide(chunk.spec.dtype)),
                        "the whole gradients of accumulate_mode = local");
  residency_.facts_changed(chunk);
}

void Trainer::draw_initial_values() {
  initialise_own_ranges(registry_, store_);
}

void Trainer::spread_initial_values() {
  initialise_from_data(ranks_, registry_, store_);
  for (const Chunk& chunk : store_.chunks()) store_.publish(chunk);
  for (Chunk& chunk : store_.chunks())
    if (chunk.spec.resident) store_.fetch(chunk);
}

void Trainer::check_initial_values() {
  check_finite(ranks_, shards());
  std::vector<int> resident;
  for (Chunk& chunk : store_.chunks()) {
    if (!chunk.spec.resident) continue;
    store_.await(chunk);
    resident.push_back(chunk.index);
  }
  check_same_copies(ranks_, registry_, store_, resident);
}

void Trainer::refresh_resident() {
  for (Chunk& chunk : store_.chunks())
    if (chunk.spec.resident) store_.refresh(chunk);
}

void Trainer::values_changed() {
  residency_.drop_copies();
  refresh_resident();
}

void Trainer::check_step() const {
  check_finish();
  micro_batches_.check_step(settings_.accumulate);
  if (settings_.kind == UpdateKind::custom && custom_update_.function == nullptr)
    fail(GEMINI_ERR_STATE, "optimizer = custom has no update; gemini_set_update first");
}

gemini_step_info_t Trainer::step(double lr) {
  const TimelineSpan span(store_.timeline(), library_call("step"));
  operations_.end_inference();
  operations_.end_last_micro_batch();
  gradients_.wait_all();
  const double scale = loss_scale_.value();
  residency_.drop_copies();  // between steps nothing is gathered, and nobody reads what changes now
  non_model_.sample_process(tiers_.compute.held_privately() + tiers_.host.held_privately());
  Words peaks = operations_.order().seen(non_model_.take_peak());
  for (const double rate :
       {ranks_.timed().take_gather_ns_per_byte(), ranks_.timed().take_reduce_ns_per_byte()})
    peaks.push_back(std::llround(rate * kRateUnit));
  const StepVerdict verdict = exchange_step(ranks_, shards(), settings_.infinity_norm, scale, peaks);
  const bool skipped = !verdict.finite && settings_.skip_nonfinite;
  loss_scale_.update(!verdict.finite, settings_.scale_rules);
  settings_.hyper.lr = lr;

  gemini_step_info_t info = GEMINI_STEP_INFO_INIT;
  if (!skipped) {
    const double factor = clip_factor(verdict.grad_norm, settings_.max_grad_norm) / scale;
    const Update update{settings_, verdict, factor, custom_update_};
    if (settings_.kind == UpdateKind::custom)  // the caller's function may fail on one rank alone
      ranks_.agreement().act_and_agree(Call::step,
                                       [&] { must([&] { apply_update(ranks_, shards(), update); }); });
    else
      apply_update(ranks_, shards(), update);
    for (const bool produced : verdict.produced) info.params_updated += produced ? 1 : 0;
    if (settings_.kind != UpdateKind::none) refresh_resident();
  }
  if (skipped || settings_.kind != UpdateKind::none) gradients_.drop_held();
  for (Parameter& p : registry_.all()) p.grad_produced = false;
  micro_batches_.restart();
  ++(skipped ? skipped_ : steps_);
  learn_order(peaks);

  info.step = steps_;
  info.skipped = skipped ? 1 : 0;
  info.grad_norm = verdict.grad_norm;
  info.loss_scale = scale;
  info.lr = lr;
  record_memory();
  return info;
}

void Trainer::discard() {
  gradients_.drop();
  residency_.drop_copies();
  micro_batches_.restart();
  operations_.order().restart();
}

void Trainer::finish_open_gradients() {
  if (micro_batches_.forward_ends_one())
    gradients_.reduce_open(true);
  else
    gradients_.reduce_all_kept();
  gradients_.wait_all();
}

void Trainer::read(Parameter& p, ValueKind kind, DType as, std::byte* to, int root) {
  if (kind == ValueKind::gradient) finish_open_gradients();
  if (p.chunk < 0) return;
  read_values(ranks_, tiers_, store_[p.chunk], p, kind, unscaling(), as, to, root);
}

void Trainer::write(Parameter& p, DType type, const std::byte* from, int root) {
  if (p.chunk < 0) return;
  Chunk& chunk = store_[p.chunk];
  if (chunk.spec.resident)
    store_.await(chunk);
  else if (chunk.status->present())
    store_.release(chunk);
  write_values(ranks_, tiers_, chunk, p, type, from, root);
  store_.publish(chunk);
  if (chunk.spec.resident) store_.refresh(chunk);
}

void Trainer::visit_shards(gemini_shard_fn fn, void* user) {
  finish_open_gradients();
  residency_.drop_copies();
  constexpr Items kShown = kValues | kStates | set_of(Item::grad_sum);
  for_each_piece(
      shards(), kShown, kValues | kStates, [](const Chunk&) { return true; },
      [&](const OwnedPiece& piece) {
        visit_piece(piece, gradients_.holds(piece.parameter), unscaling(), fn, user);
      });
}

// The next iteration is decided from what the ranks agreed to have seen.
void Trainer::learn_order(const Words& peaks) {
  if (!operations_.order().learn(peaks, static_cast<int>(store_.chunks().size()))) return;
  const auto measured = [](std::int64_t agreed, double before) {
    return agreed > 0 ? static_cast<double>(agreed) / kRateUnit : before;
  };
  rates_.gather_ns_per_byte = measured(peaks[peaks.size() - 2], rates_.gather_ns_per_byte);
  rates_.reduce_ns_per_byte = measured(peaks.back(), rates_.reduce_ns_per_byte);
  follow_order();
}

void Trainer::adopt_order(Trace trace) {
  operations_.order().adopt(std::move(trace));
  follow_order();
}

// The known order is new: what lies where, and what is fetched when, follows it.
void Trainer::follow_order() {
  const Trace& trace = operations_.order().trace();
  if (adapts_) {
    const Forecast forecast(trace, residency_.facts(), budget_);
    rehome(store_, residency_, room_at_rest(forecast, trace.size()), fixed_bytes_);
  }
  policy_->learn(trace);
}

void Trainer::record_memory() {
  Timeline* timeline = store_.timeline();
  if (timeline == nullptr) return;
  timeline->memory("compute memory", tiers_.compute.in_use());
  timeline->memory("host memory", tiers_.host.in_use());
  timeline->memory("gathered", store_.counters().gathered_bytes);
  timeline->memory("non-model", non_model_.now());
}

void Trainer::reset_counters() {
  store_.reset_counters();
  gradients_.reset_counters();
  residency_.reset_counters();
  operations_.order().reset_changes();
  tiers_.moved_bytes = 0;
  steps_at_reset_ = steps_;
  skipped_ = 0;
}

}  // namespace gemini
