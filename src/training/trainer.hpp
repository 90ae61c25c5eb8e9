// What exists from commit on: chunks, the state of the iteration, and the calls that work on them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/options.hpp"
#include "chunks/chunk_store.hpp"
#include "chunks/shard_windows.hpp"
#include "collectives/ranks.hpp"
#include "placement/policy.hpp"
#include "training/gradients.hpp"
#include "training/micro_batches.hpp"
#include "training/model_plan.hpp"
#include "training/operations.hpp"
#include "training/registry.hpp"
#include "training/residency.hpp"
#include "training/settings.hpp"
#include "training/step.hpp"
#include "training/values.hpp"

namespace gemini {

class Trainer {
 public:
  // Packs chunks and allocates this rank's shards; local, moves nothing.
  Trainer(const Options& options, Ranks& ranks, Registry& registry, ModelPlan plan, Tiers& tiers,
          NonModelMemory& non_model);

  // Throws if a model with these options cannot be built; what gemini_commit checks before ranks agree.
  static ModelPlan plan(const Options& options, const Ranks& ranks, const Registry& registry,
                        const Tiers& tiers);
  // NULL: nothing is recorded.
  void record_to(Timeline* timeline) { store_.record_to(timeline); }
  // First values; both are called by every rank, the first moves nothing and may throw on one rank alone.
  void draw_initial_values();
  void spread_initial_values();
  // For check = values; every rank calls.
  void check_initial_values();

  // The order of an earlier run: the first iteration is decided from it. Local, before first values.
  void adopt_order(Trace trace);

  // Each after the ranks agreed to make the call.
  gemini_step_info_t step(double lr);
  void discard();
  void read(Parameter& parameter, ValueKind kind, DType as, std::byte* to, int root);
  void write(Parameter& parameter, DType type, const std::byte* from, int root);
  void visit_shards(gemini_shard_fn fn, void* user);  // throws on one rank alone
  void values_changed();                              // of shards: copies are outdated
  void apply(Parameter& parameter, const ParamOption& option, const Options& options);
  void change_settings(const Options& options, const std::string& key);

  // What those calls check before ranks agree.
  void check_step() const;
  void check_quiet() const { operations_.check_no_leases(); }
  // Also that there is room to reduce what is open.
  void check_finish() const {
    check_quiet();
    residency_.require_end();
  }
  void check_between_steps() const;
  void check_gradient_held(const Parameter& parameter) const;
  void check_apply(const Parameter& parameter, const ParamOption& option) const;
  void check_change(const Options& options) const;
  // Throws if a workspace would take more than what the ranks agreed to leave free now. placement = static
  // agrees on nothing: each operation looks at what this rank has left.
  void make_room_for_workspace(std::int64_t bytes) {
    if (adapts_) residency_.require_share(operations_.order().now(), bytes);
    residency_.wait_for_room(bytes);
  }

  void pre_op(Parameter* const* params, std::int64_t count) {
    const TimelineSpan span(store_.timeline(), library_call("pre_op"));
    ranks_.queue().drive();
    operations_.pre_op(params, count, settings_.accumulate);
    record_memory();
  }
  void post_op(Parameter* const* params, std::int64_t count) {
    const TimelineSpan span(store_.timeline(), library_call("post_op"));
    operations_.post_op(params, count, settings_.accumulate);
    ranks_.queue().drive();
    record_memory();
  }
  void grad_ready(Parameter& parameter) { operations_.grad_ready(parameter, settings_.accumulate); }
  [[nodiscard]] Operations& operations() { return operations_; }
  [[nodiscard]] const Operations& operations() const { return operations_; }
  [[nodiscard]] MicroBatches& micro_batches() { return micro_batches_; }
  [[nodiscard]] ChunkStore& store() { return store_; }
  [[nodiscard]] Gradients& gradients() { return gradients_; }
  [[nodiscard]] const Residency& residency() const { return residency_; }
  [[nodiscard]] const LossScale& loss_scale() const { return loss_scale_; }
  // Since the counters were reset.
  [[nodiscard]] std::int64_t counted_steps() const { return steps_ - steps_at_reset_; }
  [[nodiscard]] std::int64_t skipped_steps() const { return skipped_; }
  void set_update(CustomUpdate update) { custom_update_ = update; }
  void reset_counters();

 private:
  [[nodiscard]] TrainingState training_state() const { return {keep_masters_, settings_.states}; }
  [[nodiscard]] Shards shards() { return {registry_, store_, staging_}; }
  // What held gradients must be multiplied with to be unscaled; a step has unscaled those it keeps.
  [[nodiscard]] double unscaling() const { return micro_batches_.idle() ? 1.0 : 1.0 / loss_scale_.value(); }
  void finish_open_gradients();
  void start_training(Chunk& chunk, const HomeOf& home);
  void refresh_resident();
  void learn_order(const Words& peaks);
  void record_memory();
  void follow_order();
  [[nodiscard]] std::vector<Place> places_for(std::int64_t arrays, std::int64_t bytes) const;
  [[nodiscard]] std::int64_t arrays_of(const Chunk& chunk) const;

  Ranks& ranks_;
  Registry& registry_;
  Tiers& tiers_;
  NonModelMemory& non_model_;
  StepSettings settings_;
  bool keep_masters_;
  bool adapts_;  // homes follow what was learnt
  Budget budget_;
  std::int64_t fixed_bytes_;
  Place kept_place_;
  bool keeps_gradients_;
  Staging staging_;
  ChunkStore store_;
  MicroBatches micro_batches_;
  Gradients gradients_;
  Residency residency_;
  Rates rates_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Policy> inference_policy_;
  Operations operations_;
  LossScale loss_scale_;
  CustomUpdate custom_update_;
  std::int64_t steps_ = 0;  // updates applied in this run
  std::int64_t steps_at_reset_ = 0;
  std::int64_t skipped_ = 0;
};

}  // namespace gemini
