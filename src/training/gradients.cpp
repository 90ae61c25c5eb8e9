#include "training/gradients.hpp"

#include <cstring>
#include <utility>

namespace gemini {
namespace {

constexpr const char* kGradients = "the gradients of this operation";

}  // namespace

Gradients::Gradients(Registry& registry, ChunkStore& store, Transport& transport, CommQueue& queue,
                     const MicroBatches& micro_batches, ReductionRules rules)
    : registry_(registry),
      store_(store),
      transport_(transport),
      queue_(queue),
      micro_batches_(micro_batches),
      rules_(rules) {}

// Whoever ends a context has seen to it that MPI is done with these.
Gradients::~Gradients() {
  for (const InFlight& reduction : in_flight_)
    if (reduction.buffer != nullptr) store_.tier().give_slot(reduction.buffer, reduction.bytes);
}

std::int64_t Gradients::in_flight_bytes() const {
  std::int64_t bytes = 0;
  for (const InFlight& reduction : in_flight_)
    if (reduction.buffer != nullptr) bytes += Tier::rounded(reduction.bytes);
  return bytes;
}

std::int64_t Gradients::buffer_bytes() const {
  std::int64_t bytes = in_flight_bytes();
  for (const Chunk& chunk : store_.chunks())
    if (chunk.gradient != nullptr && !chunk.spec.resident) bytes += Tier::rounded(chunk.gradient_bytes());
  return bytes;
}

void Gradients::reserve(Chunk& chunk) {
  chunk.gradient = store_.tier().take_slot(chunk.gradient_bytes(), kGradients);
}

void Gradients::open(Chunk& chunk) {
  if (chunk.gradient_open) return;
  if (chunk.gradient == nullptr) reserve(chunk);
  queue_.wait(chunk.reduction, "the last reduction of a resident chunk");
  chunk.gradient_open = true;
  for (const int tensor : chunk.spec.tensors)
    registry_[tensor].grad_written = registry_[tensor].grad_touched = false;
}

std::byte* Gradients::write(Parameter& p, std::int32_t* accumulate) {
  const Chunk& chunk = store_[p.chunk];
  std::byte* gradient = chunk.gradient + p.offset * size_of(p.grad_dtype);
  if (accumulate != nullptr)
    *accumulate = p.grad_written ? 1 : 0;
  else if (!p.grad_written)
    std::memset(gradient, 0, static_cast<std::size_t>(p.elems * size_of(p.grad_dtype)));
  p.grad_written = p.grad_produced = true;
  return gradient;
}

bool Gradients::blocks(const Parameter& p) const {
  if (!p.trained()) return false;
  if (p.counted_in != micro_batches_.number()) return p.backward_leases > 0;
  return !p.declared_ready && (p.backward_leases > 0 || p.forward_count > p.backward_count);
}

// The chunk's count of blocking tensors follows every change of one of them.
template <class Change>
void Gradients::change(Parameter& p, Change&& change) {
  const bool before = blocks(p);
  if (p.counted_in != micro_batches_.number()) {
    p.counted_in = micro_batches_.number();
    p.forward_count = p.backward_count = 0;
    p.declared_ready = false;
  }
  change();
  if (p.chunk >= 0) store_[p.chunk].blocking += static_cast<int>(blocks(p)) - static_cast<int>(before);
}

void Gradients::forward_ended(Parameter& p) {
  change(p, [&] { ++p.forward_count; });
}
void Gradients::backward_began(Parameter& p) {
  change(p, [&] {
    ++p.backward_leases;
    p.declared_ready = false;
    p.grad_touched = true;
  });
}
void Gradients::backward_ended(Parameter& p) {
  change(p, [&] {
    --p.backward_leases;
    ++p.backward_count;
  });
}
void Gradients::declared_ready(Parameter& p) {
  change(p, [&] { p.declared_ready = true; });
}

void Gradients::reduce_if_due(Chunk& chunk) {
  if (chunk.gradient_open && chunk.blocking == 0 && !chunk.spec.resident) reduce(chunk);
}

void Gradients::reduce(Chunk& chunk) {
  bool written = false;
  for (const int tensor : chunk.spec.tensors) written = written || registry_[tensor].grad_written;
  written = written && chunk.gradient_open;
  if (written) zero_unwritten(chunk);
  const GradientReduction reduction{
      chunk.spec.shard_elems, chunk.spec.grad_dtype, written ? chunk.gradient : nullptr,
      chunk.grad_sum.data(),  !chunk.grad_held,      rules_.divisor};
  chunk.reduction = queue_.submit_background(transport_.reduce(reduction));
  chunk.grad_held = true;
  ++reduces_;
  const bool keeps_buffer = chunk.spec.resident;
  in_flight_.push_back({chunk.reduction, keeps_buffer ? nullptr : chunk.gradient, chunk.gradient_bytes()});
  if (!keeps_buffer) chunk.gradient = nullptr;
  close(chunk);
  while (in_flight_.size() > (rules_.asynchronous ? kInFlight : 0)) wait_oldest();
}

void Gradients::close(Chunk& chunk) {
  chunk.gradient_open = false;
  for (const int tensor : chunk.spec.tensors) {
    Parameter& p = registry_[tensor];
    if (p.grad_touched) p.grad_held_in = holding_;
    p.grad_written = p.grad_touched = false;
    if (p.state == TensorState::hold_after_bwd || p.state == TensorState::ready_for_reduce)
      move_tensor(chunk, p, TensorState::hold);
  }
}

void Gradients::zero_unwritten(const Chunk& chunk) {
  const std::int64_t size = size_of(chunk.spec.grad_dtype);
  std::int64_t clean = 0;  // elements before this are written or zero
  const auto zero_to = [&](std::int64_t end) {
    std::memset(chunk.gradient + clean * size, 0, static_cast<std::size_t>((end - clean) * size));
  };
  for (const int tensor : chunk.spec.tensors) {
    const Parameter& p = registry_[tensor];
    if (!p.grad_written) continue;
    zero_to(p.offset);
    clean = p.offset + p.elems;
  }
  zero_to(chunk.spec.elems);
}

void Gradients::reduce_open() {
  for (Chunk& chunk : store_.chunks())
    if (chunk.gradient_open || (chunk.spec.resident && chunk.trained())) reduce(chunk);
}

void Gradients::finish_micro_batch() {
  reduce_open();
  for (Chunk& chunk : store_.chunks()) chunk.blocking = 0;
}

bool Gradients::wait_oldest() {
  if (in_flight_.empty()) return false;
  const InFlight oldest = in_flight_.front();
  queue_.wait(oldest.ticket, "reducing gradients");
  in_flight_.pop_front();
  if (oldest.buffer != nullptr) store_.tier().give_slot(oldest.buffer, oldest.bytes);
  return true;
}

void Gradients::drop_held() {
  ++holding_;
  for (Chunk& chunk : store_.chunks()) chunk.grad_held = false;
}

// Leases on RESIDENT parameters may differ over ranks; there the chunk decides.
bool Gradients::holds(const Parameter& p) const {
  if (!p.trained() || p.chunk < 0 || !store_[p.chunk].grad_held) return false;
  return p.resident || p.grad_held_in == holding_;
}

void Gradients::drop() {
  wait_all();
  for (Chunk& chunk : store_.chunks()) {
    if (chunk.gradient_open && !chunk.spec.resident)
      store_.tier().give_slot(std::exchange(chunk.gradient, nullptr), chunk.gradient_bytes());
    close(chunk);
    chunk.blocking = 0;
  }
  drop_held();
  for (Parameter& p : registry_.all()) p.grad_produced = false;
}

}  // namespace gemini
