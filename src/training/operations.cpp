#include "training/operations.hpp"

#include <algorithm>

#include "training/move_tensor.hpp"

namespace gemini {
namespace {

// Where pointers of parameters without elements point.
alignas(256) std::byte nothing[256];

using Kind = TraceEvent::Kind;

// An inference pass longer than this is forgotten.
constexpr int kLongestPass = 1 << 16;

gemini_phase_t youngest_phase(const Parameter& p) {
  return static_cast<gemini_phase_t>(p.leases.back());
}

}  // namespace

Operations::Operations(ChunkStore& store, Registry& registry, Gradients& gradients,
                       MicroBatches& micro_batches, Residency& residency, NonModelMemory& non_model,
                       Agreement& agreement)
    : store_(store),
      registry_(registry),
      gradients_(gradients),
      micro_batches_(micro_batches),
      residency_(residency),
      non_model_(non_model),
      agreement_(agreement) {
  gradients_.set_make_room([this](std::int64_t bytes) { residency_.make_room(bytes); });
  gradients_.set_watch([this](int chunk, bool opened) {
    if (store_[chunk].spec.resident) return;
    opened ? training_order_.opened(chunk) : training_order_.closed(chunk);
  });
}

// Parameters and chunks of a call, each once and in order of first appearance. Most calls name what the call
// before named: gemini_post_op what gemini_pre_op did.
void Operations::collect(Parameter* const* params, std::int64_t count) {
  if (count < 0) fail(GEMINI_ERR_ARGUMENT, "count is {}, must be >= 0", count);
  if (count > 0 && params == nullptr) fail(GEMINI_ERR_ARGUMENT, "params is NULL with count {}", count);
  ++operation_;
  if (count > 0 && static_cast<std::size_t>(count) == collected_.size() &&
      std::equal(params, params + count, collected_.begin()))
    return;
  collected_.clear();
  named_.clear();
  chunks_.clear();
  residents_.clear();
  for (std::int64_t i = 0; i < count; ++i) {
    Parameter* p = params[i];
    if (p == nullptr) fail(GEMINI_ERR_ARGUMENT, "params[{}] is NULL", i);
    if (!registry_.owns(*p))
      fail(GEMINI_ERR_ARGUMENT, "params[{}], \"{}\", belongs to another context", i, p->name);
    if (p->seen_in == operation_) continue;
    p->seen_in = operation_;
    named_.push_back(p);
    if (p->chunk < 0 || store_[p->chunk].seen_in == operation_) continue;
    store_[p->chunk].seen_in = operation_;
    (p->resident ? residents_ : chunks_).push_back(p->chunk);
  }
  collected_.assign(params, params + count);
}

void Operations::pre_op(Parameter* const* params, std::int64_t count, std::int64_t accumulate) {
  collect(params, count);
  const gemini_phase_t phase = micro_batches_.phase();
  if (phase == GEMINI_FORWARD) micro_batches_.check_forward(accumulate);
  const bool ends_one = phase == GEMINI_FORWARD && micro_batches_.forward_ends_one();
  if (ends_one) residency_.require_end();
  if (!chunks_.empty())
    begin_event(phase, ends_one);
  else if (ends_one)
    end_micro_batch();
  const bool may_begin = phase == GEMINI_FORWARD || phase == GEMINI_BACKWARD;
  if (may_begin && micro_batches_.idle()) gradients_.drop_held();
  for (const int chunk : residents_) store_.await(store_[chunk]);
  if (phase == GEMINI_FORWARD) micro_batches_.forward();
  if (phase == GEMINI_BACKWARD) micro_batches_.backward();
  for (Parameter* p : named_) lease(*p, phase);
  if (Timeline* timeline = store_.timeline()) under_way_.began(*timeline, named_, phase);
  order_of(phase).returns();
}

void Operations::begin_event(gemini_phase_t phase, bool ends_one) {
  const Need need{&chunks_, gradient_bytes()};
  const Moment moment = order_of(phase).look(Kind::begin, phase, chunks_);
  const bool inference = phase == GEMINI_INFERENCE;
  residency_.require(need, ends_one);
  residency_.require_here(need, ends_one, moment, inference);
  if (ends_one) end_micro_batch();
  note(OrderedCall::Kind::pre_op, phase);
  OperationOrder& order = order_of(phase);
  inference ? begin_inference() : end_inference();
  if (order.records())
    non_model_.sample_process(store_.tiers().compute.held_privately() + store_.tiers().host.held_privately());
  residency_.plan(need, moment, inference);
  order.advance(Kind::begin, phase, chunks_, non_model_.take_peak());
  residency_.begin(need, inference);
}

void Operations::post_op(Parameter* const* params, std::int64_t count, std::int64_t accumulate) {
  collect(params, count);
  for (const Parameter* p : named_)
    if (p->leases.empty())
      fail(GEMINI_ERR_STATE, "parameter \"{}\" is not leased; gemini_pre_op first", p->name);
  for (const auto* chunks : {&chunks_, &residents_})
    for (const int chunk : *chunks) store_.check_unwritten(store_[chunk]);
  if (Timeline* timeline = store_.timeline()) under_way_.ended(*timeline, named_);
  note(OrderedCall::Kind::post_op);
  const gemini_phase_t phase = phase_of_leases();
  for (Parameter* p : named_) end_lease(*p);
  const bool ordered = !chunks_.empty();
  idle_.clear();
  for (const int chunk : chunks_)
    if (store_[chunk].status->leases == 0) idle_.push_back(chunk);
  OperationOrder& order = order_of(phase);
  const Moment moment = ordered ? order.advance(Kind::end, phase, idle_, non_model_.take_peak()) : Moment{};
  for (const int chunk : chunks_) gradients_.reduce_if_due(store_[chunk], micro_batches_.is_last(accumulate));
  if (ordered && phase == GEMINI_INFERENCE) residency_.end_inference(idle_);
  if (ordered && phase != GEMINI_INFERENCE) residency_.end(idle_, moment);
  order.returns();
}

// Of the first that all ranks have leased alike.
gemini_phase_t Operations::phase_of_leases() const {
  for (const Parameter* p : named_)
    if (p->chunk >= 0 && !p->resident) return youngest_phase(*p);
  return micro_batches_.phase();
}

// A pass has no end that anyone tells us: it ends where its first operation comes again.
void Operations::begin_inference() {
  training_order_.keep_memory(non_model_.take_peak());
  if (inference_order_.events() > kLongestPass) inference_order_.restart();
  if (!inference_order_.at_start() && chunks_ == first_of_inference_) end_inference();
  if (inference_order_.at_start()) first_of_inference_ = chunks_;
}

void Operations::end_inference() {
  if (inference_order_.at_start()) return;
  const std::vector<std::int64_t> unmeasured(inference_order_.seen(0).size());
  if (inference_order_.learn(unmeasured, static_cast<int>(store_.chunks().size())))
    residency_.learn_inference(inference_order_.trace());
}

// What the operation will ask of compute memory for gradients.
std::int64_t Operations::gradient_bytes() {
  if (micro_batches_.phase() != GEMINI_BACKWARD) return 0;
  std::int64_t bytes = 0;
  for (const Parameter* p : named_) {
    if (!opens_gradient(*p) || p->resident || store_[p->chunk].opened_in == operation_) continue;
    Chunk& chunk = store_[p->chunk];
    chunk.opened_in = operation_;
    bytes += gradients_.bytes_to_open(chunk);
  }
  return bytes;
}

void Operations::lease(Parameter& p, gemini_phase_t phase) {
  p.leases.push_back(static_cast<std::uint8_t>(phase));
  ++leases_;
  if (p.chunk < 0) {
    if (phase == GEMINI_BACKWARD && p.trained()) gradients_.backward_began(p);
    return;
  }
  Chunk& chunk = store_[p.chunk];
  ++chunk.status->leases;
  move_tensor(chunk, p, TensorState::compute);
  if (!opens_gradient(p)) return;
  gradients_.open(chunk);
  gradients_.backward_began(p);
}

void Operations::end_lease(Parameter& p) {
  const gemini_phase_t phase = youngest_phase(p);
  p.leases.pop_back();
  --leases_;
  if (p.trained() && phase == GEMINI_FORWARD) gradients_.forward_ended(p);
  if (p.trained() && phase == GEMINI_BACKWARD) gradients_.backward_ended(p);
  if (p.chunk < 0) return;
  --store_[p.chunk].status->leases;
  if (p.leases.empty()) move_tensor(store_[p.chunk], p, resting_state(p));
}

TensorState Operations::resting_state(const Parameter& p) const {
  if (!store_[p.chunk].status->gradient_open || !p.grad_touched) return TensorState::hold;
  return gradients_.blocks(p) ? TensorState::hold_after_bwd : TensorState::ready_for_reduce;
}

std::byte* Operations::data(Parameter& p) {
  if (p.leases.empty())
    fail(GEMINI_ERR_STATE,
         "parameter \"{}\" is not leased; its values are here between gemini_pre_op and gemini_post_op",
         p.name);
  if (p.ignored && p.attached == nullptr)
    fail(GEMINI_ERR_STATE, "IGNORED parameter \"{}\" has no memory; gemini_param_attach first", p.name);
  if (p.ignored) return static_cast<std::byte*>(p.attached);
  if (p.chunk < 0) return nothing;
  return store_.gathered(store_[p.chunk]) + p.offset * size_of(p.dtype);
}

std::byte* Operations::gradient(Parameter& p, std::int32_t* accumulate) {
  if (!p.trained())
    fail(GEMINI_ERR_ARGUMENT, "parameter \"{}\" is {}: it has no gradient", p.name,
         p.ignored ? "IGNORED" : "FROZEN");
  if (p.backward_leases == 0)
    fail(GEMINI_ERR_STATE, "parameter \"{}\" has no lease taken in GEMINI_BACKWARD", p.name);
  if (p.declared_ready && p.counted_in == micro_batches_.number())
    fail(GEMINI_ERR_STATE,
         "the gradient of \"{}\" was declared ready; a new BACKWARD gemini_pre_op reopens it", p.name);
  if (p.chunk >= 0) return gradients_.write(p, accumulate);
  if (accumulate != nullptr) *accumulate = 0;
  p.grad_produced = true;
  return nothing;
}

void Operations::grad_ready(Parameter& p, std::int64_t accumulate) {
  if (!p.trained())
    fail(GEMINI_ERR_ARGUMENT, "parameter \"{}\" is {}: it has no gradient", p.name,
         p.ignored ? "IGNORED" : "FROZEN");
  const bool counted = p.counted_in == micro_batches_.number();
  if (p.backward_leases == 0 && (!counted || p.backward_count == 0))
    fail(GEMINI_ERR_STATE, "parameter \"{}\" was not leased in GEMINI_BACKWARD in this micro-batch", p.name);
  collected_.clear();
  named_ = {&p};
  note(OrderedCall::Kind::grad_ready);
  gradients_.declared_ready(p);
  if (p.chunk < 0) return;
  Chunk& chunk = store_[p.chunk];
  if (p.state == TensorState::hold_after_bwd) move_tensor(chunk, p, TensorState::ready_for_reduce);
  gradients_.reduce_if_due(chunk, micro_batches_.is_last(accumulate));
}

void Operations::note(OrderedCall::Kind kind, gemini_phase_t phase) {
  if (!agreement_.notes_order()) return;
  OrderedCall call{kind, static_cast<int>(phase), {}};
  bool local = true;
  for (const Parameter* p : named_) {
    local = local && (p->resident || p->ignored);
    call.params.push_back(p->index);
  }
  if (!local || kind == OrderedCall::Kind::micro_batch_end) agreement_.note(call);
}

void Operations::check_micro_batch_may_end() const {
  for (const Parameter& p : registry_.all())
    if (p.backward_leases > 0)
      fail(GEMINI_ERR_STATE,
           "a FORWARD operation would end the micro-batch while \"{}\" is leased in BACKWARD", p.name);
}

// No event of its own: the operation that ends a micro-batch may be another on each rank.
void Operations::end_micro_batch() {
  check_micro_batch_may_end();
  note(OrderedCall::Kind::micro_batch_end);
  gradients_.finish_micro_batch(false);
  micro_batches_.finish_one();
}

void Operations::check_no_leases() const {
  if (leases_ == 0) return;
  for (const Parameter& p : registry_.all())
    if (!p.leases.empty())
      fail(GEMINI_ERR_STATE, "a lease of parameter \"{}\" is open; gemini_post_op first", p.name);
}

}  // namespace gemini
