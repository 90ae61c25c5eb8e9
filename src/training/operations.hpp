// gemini_pre_op and gemini_post_op: leases on parameters, and what they set in motion.
//
// An operation on sharded parameters is an event that all ranks make; those on RESIDENT or IGNORED parameters
// alone are this rank's own affair and change nothing that peers see.
#pragma once

#include <cstdint>
#include <vector>

#include "chunks/chunk_store.hpp"
#include "collectives/agreement.hpp"
#include "training/gradients.hpp"
#include "training/micro_batches.hpp"
#include "training/non_model_memory.hpp"
#include "training/operation_lanes.hpp"
#include "training/operation_order.hpp"
#include "training/registry.hpp"
#include "training/residency.hpp"

namespace gemini {

class Operations {
 public:
  Operations(ChunkStore& store, Registry& registry, Gradients& gradients, MicroBatches& micro_batches,
             Residency& residency, NonModelMemory& non_model, Agreement& agreement);

  void pre_op(Parameter* const* params, std::int64_t count, std::int64_t accumulate);
  void post_op(Parameter* const* params, std::int64_t count, std::int64_t accumulate);

  std::byte* data(Parameter& parameter);
  std::byte* gradient(Parameter& parameter, std::int32_t* accumulate);
  void grad_ready(Parameter& parameter, std::int64_t accumulate);

  [[nodiscard]] std::int64_t leases() const { return leases_; }
  // Throws GEMINI_ERR_STATE while a lease is open.
  void check_no_leases() const;
  // Reduces what the last micro-batch left open.
  void end_last_micro_batch() { gradients_.finish_micro_batch(true); }

  // An inference pass, if one was under way, is over.
  void end_inference();
  // Of training; inference has its own.
  [[nodiscard]] OperationOrder& order() { return training_order_; }
  [[nodiscard]] const OperationOrder& order() const { return training_order_; }

 private:
  // For check = order; operations on RESIDENT or IGNORED parameters alone are this rank's own.
  void note(OrderedCall::Kind kind, gemini_phase_t phase = {});
  void check_micro_batch_may_end() const;
  void collect(Parameter* const* params, std::int64_t count);
  [[nodiscard]] std::int64_t gradient_bytes();
  [[nodiscard]] gemini_phase_t phase_of_leases() const;
  void begin_event(gemini_phase_t phase, bool ends_one);
  void begin_inference();
  OperationOrder& order_of(gemini_phase_t phase) {
    return phase == GEMINI_INFERENCE ? inference_order_ : training_order_;
  }
  void end_micro_batch();
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
  Residency& residency_;
  NonModelMemory& non_model_;
  Agreement& agreement_;
  OperationOrder training_order_;
  OperationOrder inference_order_;
  OperationLanes under_way_;             // for a timeline
  std::vector<int> first_of_inference_;  // chunks of the operation that begins a pass
  std::int64_t leases_ = 0;
  std::int64_t operation_ = 0;         // number of the call, to see a parameter or chunk once per call
  std::vector<Parameter*> collected_;  // as the last call gave them; empty: not what is in the following
  std::vector<Parameter*> named_;      // by the call under way, each once
  std::vector<int> chunks_;            // of those, each once: the sharded ones
  std::vector<int> residents_;         // and the RESIDENT ones
  std::vector<int> idle_;              // of chunks_, those whose last lease ended
};

}  // namespace gemini
