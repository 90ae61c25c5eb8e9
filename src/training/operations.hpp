// gemini_pre_op and gemini_post_op: leases on parameters, and what they set in motion.
#pragma once

#include <cstdint>
#include <vector>

#include "chunks/chunk_store.hpp"
#include "collectives/agreement.hpp"
#include "training/gradients.hpp"
#include "training/micro_batches.hpp"
#include "training/registry.hpp"

namespace gemini {

class Operations {
 public:
  Operations(ChunkStore& store, Registry& registry, Gradients& gradients, MicroBatches& micro_batches,
             Agreement& agreement)
      : store_(store),
        registry_(registry),
        gradients_(gradients),
        micro_batches_(micro_batches),
        agreement_(agreement) {}

  void pre_op(Parameter* const* params, std::int64_t count, std::int64_t accumulate);
  void post_op(Parameter* const* params, std::int64_t count);

  std::byte* data(Parameter& parameter);
  std::byte* gradient(Parameter& parameter, std::int32_t* accumulate);
  void grad_ready(Parameter& parameter);

  [[nodiscard]] std::int64_t leases() const { return leases_; }
  // Throws GEMINI_ERR_STATE while a lease is open.
  void check_no_leases() const;

 private:
  // For check = order; operations on RESIDENT or IGNORED parameters alone are this rank's own.
  void note(OrderedCall::Kind kind, gemini_phase_t phase = {});
  void check_micro_batch_may_end() const;
  // Leaves BACKWARD behind: the micro-batch is reduced and the next may begin.
  void end_micro_batch();
  void collect(Parameter* const* params, std::int64_t count);
  [[nodiscard]] std::int64_t room_for(const std::vector<int>& to_gather);
  void make_room(std::int64_t bytes);
  void lease(Parameter& parameter, gemini_phase_t phase);
  void end_lease(Parameter& parameter);
  [[nodiscard]] TensorState resting_state(const Parameter& parameter) const;
  [[nodiscard]] bool opens_gradient(const Parameter& parameter) const {
    return parameter.chunk >= 0 && parameter.trained() && micro_batches_.phase() == GEMINI_BACKWARD;
  }

  ChunkStore& store_;
  Registry& registry_;
  Gradients& gradients_;
  MicroBatches& micro_batches_;
  Agreement& agreement_;
  std::int64_t leases_ = 0;
  std::int64_t operation_ = 0;     // number of the call, to see a parameter or chunk once per call
  std::vector<Parameter*> named_;  // by the call under way, each once
  std::vector<int> chunks_;        // of those, each once
};

}  // namespace gemini
