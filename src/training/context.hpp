// A training context: the parts of the library put together for one communicator.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>

#include "base/log.hpp"
#include "base/options.hpp"
#include "collectives/ranks.hpp"
#include "memory/stored.hpp"
#include "training/non_model_memory.hpp"
#include "training/registry.hpp"
#include "training/timeline_file.hpp"
#include "training/trace_file.hpp"
#include "training/trainer.hpp"

namespace gemini {

class Context {
 public:
  // Collective over parent. refusal: what this rank has against being here.
  Context(MPI_Comm parent, Options options, std::exception_ptr refusal = nullptr);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Local: a context that failed, or outlived MPI. True: MPI may still use its memory.
  bool abandon() noexcept {
    if (files_) files_->remove_name();  // this object may stay until the process ends
    return ranks_.queue().abandon();
  }

  void commit();
  // All ranks call, once; then the context can only go. Throws what could not be written.
  void end();
  // The trainer; throws before commit.
  [[nodiscard]] Trainer& trainer();
  [[nodiscard]] bool committed() const noexcept { return trainer_ != nullptr; }
  void check_not_committed(const char* what) const;

  // Agreement::agree over this context's ranks.
  void agree(Call call, const Claim& claim, const std::function<void()>& check) {
    ranks_.agreement().agree(call, claim, check);
  }
  // The value of an option, with what `auto` stands for.
  [[nodiscard]] std::string option_in_force(const std::string& key) const;

  // key and value as the caller gave them; NULL is refused in agreement.
  void set_option(const char* key, const char* value);
  void set_param_option(Parameter& parameter, const char* key, const char* value);
  void set_learning_rate(double lr);
  // The caller's update of `optimizer = custom`; before commit or after.
  void set_update(gemini_shard_fn fn, void* user);
  [[nodiscard]] double learning_rate() const { return learning_rate_; }

  [[nodiscard]] std::int64_t stat(gemini_stat_t which) const;
  void reset_stats();
  // All ranks call; the page is whole on rank 0.
  std::string report();
  // All ranks call.
  void write_timeline(const char* path) { write_timelines(ranks_, timeline_.get(), path); }

  [[nodiscard]] Ranks& ranks() { return ranks_; }
  [[nodiscard]] const Ranks& ranks() const { return ranks_; }
  [[nodiscard]] Registry& registry() { return registry_; }
  // A workspace of the caller, in compute memory.
  [[nodiscard]] void* allocate_workspace(std::int64_t bytes);
  void note_memory(std::int64_t bytes) { non_model_.note(bytes, compute_); }
  void free_workspace(void* pointer) { non_model_.free(pointer, compute_); }
  // What gemini_step has to be equal on all ranks.
  [[nodiscard]] std::string step_claim();
  [[nodiscard]] const Log& log() const { return log_; }

 private:
  void check_machine() const;
  void open_files();
  void resolve_options();
  void share_memory(ModelPlan& plan);
  void build(ModelPlan plan, std::optional<Trace> order);
  void write_order();

  Options options_;
  std::unique_ptr<Timeline> timeline_;  // before the queue, which writes to it; NULL: trace = off
  Ranks ranks_;
  Log log_;
  Tier compute_;
  Tier host_;
  std::unique_ptr<SpillFile> files_;
  Tiers tiers_;
  NonModelMemory non_model_;
  Registry registry_;
  TraceOrigin origin_;  // as committed
  std::unique_ptr<Trainer> trainer_;
  double learning_rate_;
  CustomUpdate custom_update_;
};

}  // namespace gemini
