// A training context: the parts of the library put together for one communicator.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>

#include "base/log.hpp"
#include "base/options.hpp"
#include "collectives/ranks.hpp"
#include "memory/tier.hpp"
#include "training/registry.hpp"
#include "training/trainer.hpp"

namespace gemini {

// The caller's own compute memory, as far as we know of it.
class NonModelMemory {
 public:
  ~NonModelMemory();
  void* allocate(std::int64_t bytes, Tier& tier);
  void free(void* pointer, Tier& tier);
  void note(std::int64_t bytes);
  [[nodiscard]] std::int64_t peak() const { return peak_; }
  void reset_peak() { peak_ = workspace_bytes_ + noted_; }

 private:
  std::map<void*, std::int64_t> workspaces_;
  std::int64_t workspace_bytes_ = 0;
  std::int64_t noted_ = 0;
  std::int64_t peak_ = 0;
};

class Context {
 public:
  // Collective over parent.
  Context(MPI_Comm parent, Options options);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Local: a context that failed, or outlived MPI. True: MPI may still use its memory.
  bool abandon() noexcept { return ranks_.queue().abandon(); }

  void commit();
  // The trainer; throws before commit.
  [[nodiscard]] Trainer& trainer();
  [[nodiscard]] const Trainer* trainer_if_committed() const { return trainer_.get(); }
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

  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] Ranks& ranks() { return ranks_; }
  [[nodiscard]] const Ranks& ranks() const { return ranks_; }
  [[nodiscard]] Registry& registry() { return registry_; }
  [[nodiscard]] NonModelMemory& non_model() { return non_model_; }
  [[nodiscard]] Tier& tier() { return tier_; }
  [[nodiscard]] const Log& log() const { return log_; }

 private:
  // refusal: what this rank has against its options.
  Context(MPI_Comm parent, Options options, std::exception_ptr refusal);
  void resolve_options();

  Options options_;
  Ranks ranks_;
  Log log_;
  Tier tier_;  // compute memory
  NonModelMemory non_model_;
  Registry registry_;
  std::unique_ptr<Trainer> trainer_;
  double learning_rate_;
  CustomUpdate custom_update_;
};

// Throws GEMINI_ERR_UNSUPPORTED for what this version does not have.
void check_supported(const Options& options, int ranks);

}  // namespace gemini
