#include "training/operations.hpp"

#include "placement/policy.hpp"

namespace gemini {
namespace {

// Where pointers of parameters without elements point.
alignas(256) std::byte nothing[256];

constexpr const char* kOperation = "the chunks of this operation";

ChunkView view_of(const Chunk& chunk) {
  return {chunk.index, chunk.gathered, chunk.leases > 0, chunk.spec.resident};
}

}  // namespace

void move_tensor(Chunk& chunk, Parameter& p, TensorState to) {
  if (p.state == to) return;
  if (!transition_allowed(p.state, to))
    fail(GEMINI_ERR_INTERNAL, "\"{}\" may not go from {} to {}", p.name, name_of(p.state), name_of(to));
  --chunk.tensors_in[static_cast<std::size_t>(p.state)];
  ++chunk.tensors_in[static_cast<std::size_t>(to)];
  p.state = to;
}

// Parameters and chunks of a call, each once and in order of first appearance.
void Operations::collect(Parameter* const* params, std::int64_t count) {
  if (count < 0) fail(GEMINI_ERR_ARGUMENT, "count is {}, must be >= 0", count);
  if (count > 0 && params == nullptr) fail(GEMINI_ERR_ARGUMENT, "params is NULL with count {}", count);
  ++operation_;
  named_.clear();
  chunks_.clear();
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
    chunks_.push_back(p->chunk);
  }
}

void Operations::pre_op(Parameter* const* params, std::int64_t count, std::int64_t accumulate) {
  collect(params, count);
  const gemini_phase_t phase = micro_batches_.phase();
  const bool may_begin = phase == GEMINI_FORWARD || phase == GEMINI_BACKWARD;
  if (phase == GEMINI_FORWARD) micro_batches_.check_forward(accumulate);
  std::vector<ChunkView> needed;
  for (const int chunk : chunks_) needed.push_back(view_of(store_[chunk]));
  std::vector<int> to_gather;
  for (const Action& action : StaticPolicy::before_operation(needed)) to_gather.push_back(action.chunk);

  const std::int64_t bytes = room_for(to_gather);
  const bool ends_one = phase == GEMINI_FORWARD && micro_batches_.forward_ends_one();
  store_.tier().require(bytes, kOperation,
                        ends_one ? gradients_.buffer_bytes() : gradients_.in_flight_bytes());
  if (ends_one) {
    check_micro_batch_may_end();
    note(OrderedCall::Kind::micro_batch_end);
    end_micro_batch();
  }
  note(OrderedCall::Kind::pre_op, phase);
  make_room(bytes);
  if (may_begin && micro_batches_.idle()) gradients_.drop_held();
  store_.gather(to_gather);
  if (phase == GEMINI_FORWARD) micro_batches_.forward();
  if (phase == GEMINI_BACKWARD) micro_batches_.backward();
  for (Parameter* p : named_) lease(*p, phase);
}

void Operations::post_op(Parameter* const* params, std::int64_t count) {
  collect(params, count);
  for (const Parameter* p : named_)
    if (p->leases.empty())
      fail(GEMINI_ERR_STATE, "parameter \"{}\" is not leased; gemini_pre_op first", p->name);
  for (const int chunk : chunks_) store_.check_unwritten(store_[chunk]);
  note(OrderedCall::Kind::post_op);
  for (Parameter* p : named_) end_lease(*p);
  std::vector<ChunkView> used;
  for (const int chunk : chunks_) {
    gradients_.reduce_if_due(store_[chunk]);
    used.push_back(view_of(store_[chunk]));
  }
  for (const Action& action : StaticPolicy::after_operation(used)) store_.release(action.chunk);
}

// What the operation will ask of the budget.
std::int64_t Operations::room_for(const std::vector<int>& to_gather) {
  std::int64_t bytes = 0;
  for (const int chunk : to_gather) bytes += Tier::rounded(store_.slot_bytes(store_[chunk]));
  for (const Parameter* p : named_) {
    if (!opens_gradient(*p) || store_[p->chunk].opened_in == operation_) continue;
    Chunk& chunk = store_[p->chunk];
    chunk.opened_in = operation_;
    bytes += Tier::rounded(gradients_.bytes_to_open(chunk));
  }
  return bytes;
}

// Reductions in flight hold buffers; waiting for them sends nothing.
void Operations::make_room(std::int64_t bytes) {
  while (!store_.tier().fits_here(bytes) && gradients_.wait_oldest()) {
  }
}

void Operations::lease(Parameter& p, gemini_phase_t phase) {
  p.leases.push_back(static_cast<std::uint8_t>(phase));
  ++leases_;
  if (p.chunk < 0) {
    if (phase == GEMINI_BACKWARD && p.trained()) gradients_.backward_began(p);
    return;
  }
  Chunk& chunk = store_[p.chunk];
  ++chunk.leases;
  move_tensor(chunk, p, TensorState::compute);
  if (!opens_gradient(p)) return;
  gradients_.open(chunk);
  gradients_.backward_began(p);
}

void Operations::end_lease(Parameter& p) {
  const auto phase = static_cast<gemini_phase_t>(p.leases.back());
  p.leases.pop_back();
  --leases_;
  if (p.trained() && phase == GEMINI_FORWARD) gradients_.forward_ended(p);
  if (p.trained() && phase == GEMINI_BACKWARD) gradients_.backward_ended(p);
  if (p.chunk < 0) return;
  --store_[p.chunk].leases;
  if (p.leases.empty()) move_tensor(store_[p.chunk], p, resting_state(p));
}

TensorState Operations::resting_state(const Parameter& p) const {
  if (!store_[p.chunk].gradient_open || !p.grad_touched) return TensorState::hold;
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

void Operations::grad_ready(Parameter& p) {
  if (!p.trained())
    fail(GEMINI_ERR_ARGUMENT, "parameter \"{}\" is {}: it has no gradient", p.name,
         p.ignored ? "IGNORED" : "FROZEN");
  const bool counted = p.counted_in == micro_batches_.number();
  if (p.backward_leases == 0 && (!counted || p.backward_count == 0))
    fail(GEMINI_ERR_STATE, "parameter \"{}\" was not leased in GEMINI_BACKWARD in this micro-batch", p.name);
  named_ = {&p};
  note(OrderedCall::Kind::grad_ready);
  gradients_.declared_ready(p);
  if (p.chunk < 0) return;
  Chunk& chunk = store_[p.chunk];
  if (p.state == TensorState::hold_after_bwd) move_tensor(chunk, p, TensorState::ready_for_reduce);
  gradients_.reduce_if_due(chunk);
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

void Operations::end_micro_batch() {
  gradients_.finish_micro_batch();
  micro_batches_.finish_one();
}

void Operations::check_no_leases() const {
  if (leases_ == 0) return;
  for (const Parameter& p : registry_.all())
    if (!p.leases.empty())
      fail(GEMINI_ERR_STATE, "a lease of parameter \"{}\" is open; gemini_post_op first", p.name);
}

}  // namespace gemini
