#include "training/gradients.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "chunks/chunk_event.hpp"
#include "training/move_tensor.hpp"

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
  for (const InFlight& reduction : in_flight_) {
    if (reduction.buffer != nullptr) store_.give_gradient_slot(*reduction.chunk, reduction.buffer);
    if (reduction.landing != nullptr)
      store_.compute().give_slot(reduction.landing, reduction.chunk->sum_bytes());
  }
}

// A sum that rests in a file is formed in compute memory.
bool Gradients::lands(const Chunk& chunk) {
  return chunk.item(Item::grad_sum).in_file();
}

std::int64_t Gradients::bytes_when_open(const Chunk& chunk) {
  return whole_pages(chunk.gradient_bytes()) + (lands(chunk) ? whole_pages(chunk.sum_bytes()) : 0);
}

std::int64_t Gradients::buffer_bytes(const Chunk& chunk) {
  return (chunk.gradient != nullptr ? whole_pages(chunk.gradient_bytes()) : 0) +
         (chunk.landing != nullptr ? whole_pages(chunk.sum_bytes()) : 0);
}

std::int64_t Gradients::buffer_bytes() const {
  std::int64_t bytes = in_flight_bytes_;
  for (const Chunk& chunk : store_.chunks())
    if (!chunk.spec.resident) bytes += buffer_bytes(chunk);
  return bytes;
}

std::int64_t Gradients::bytes_to_finish() const {
  std::int64_t most = 0;
  for (const Chunk& chunk : store_.chunks()) {
    if (chunk.moved_gradient) most = std::max(most, bytes_when_open(chunk));
    if (chunk.kept_pending && lands(chunk)) most = std::max(most, whole_pages(chunk.sum_bytes()));
  }
  return most;
}

void Gradients::reserve(Chunk& chunk) {
  chunk.gradient = store_.take_gradient_slot(chunk);
  if (lands(chunk)) chunk.landing = store_.compute().take_slot(chunk.sum_bytes(), kGradients);
}

void Gradients::open(Chunk& chunk) {
  if (chunk.status->gradient_open) return;
  if (chunk.moved_gradient) return bring_back(chunk);
  if (chunk.gradient == nullptr) reserve(chunk);
  queue_.wait(chunk.reduction, "the last reduction of a resident chunk");
  chunk.status->gradient_open = true;
  watch_(chunk.index, true);
  for (const int tensor : chunk.spec.tensors)
    registry_[tensor].grad_written = registry_[tensor].grad_touched = false;
}

void Gradients::move_down(Chunk& chunk, Place to) {
  const TimelineSpan span(store_.timeline(),
                          chunk_move(chunk, "gradient", chunk.gradient_bytes(), Place::compute, to));
  Stored there(store_.tiers(), to, chunk.gradient_bytes(), kGradients);
  there.store(store_.tiers(), 0, chunk.gradient_bytes(), chunk.gradient);
  store_.tiers().moved_bytes += chunk.gradient_bytes();
  chunk.moved_gradient = std::move(there);
  chunk.status->gradient_open = false;
  give_gradient(chunk);
}

void Gradients::bring_back(Chunk& chunk) {
  const TimelineSpan span(store_.timeline(), chunk_move(chunk, "gradient", chunk.gradient_bytes(),
                                                        chunk.moved_gradient.place(), Place::compute));
  reserve(chunk);
  chunk.moved_gradient.load(store_.tiers(), 0, chunk.gradient_bytes(), chunk.gradient);
  store_.tiers().moved_bytes += chunk.gradient_bytes();
  chunk.moved_gradient = {};
  chunk.status->gradient_open = true;
}

void Gradients::give_gradient(Chunk& chunk) {
  store_.give_gradient_slot(chunk, std::exchange(chunk.gradient, nullptr));
  if (chunk.landing != nullptr)
    store_.compute().give_slot(std::exchange(chunk.landing, nullptr), chunk.sum_bytes());
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

namespace {

bool blocks_by_counts(const Parameter& p) {
  return !p.declared_ready && (p.backward_leases > 0 || p.forward_count > p.backward_count);
}

}  // namespace

bool Gradients::blocks(const Parameter& p) const {
  if (!p.trained()) return false;
  return p.counted_in == micro_batches_.number() ? blocks_by_counts(p) : p.backward_leases > 0;
}

// The chunk's count of blocking tensors follows every change of one of them.
template <class Change>
void Gradients::change(Parameter& p, Change&& change) {
  if (p.counted_in != micro_batches_.number()) {  // blocks just as much as its older counts did
    p.counted_in = micro_batches_.number();
    p.forward_count = p.backward_count = 0;
    p.declared_ready = false;
  }
  const bool before = blocks_by_counts(p);
  change();
  const bool after = blocks_by_counts(p);
  if (before != after && p.chunk >= 0) store_[p.chunk].blocking += after ? 1 : -1;
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

void Gradients::reduce_if_due(Chunk& chunk, bool last) {
  if (chunk.status->gradient_open && chunk.blocking == 0 && !chunk.spec.resident) end_buffer(chunk, last);
}

bool Gradients::written(const Chunk& chunk) const {
  if (!chunk.status->gradient_open) return false;
  for (const int tensor : chunk.spec.tensors)
    if (registry_[tensor].grad_written) return true;
  return false;
}

void Gradients::close(Chunk& chunk) {
  chunk.status->gradient_open = false;
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

void Gradients::reduce_open(bool last) {
  for (Chunk& chunk : store_.chunks()) {
    if (chunk.moved_gradient) {
      make_room_(bytes_to_open(chunk));
      bring_back(chunk);
    }
    if (chunk.status->gradient_open || (chunk.spec.resident && chunk.trained())) end_buffer(chunk, last);
  }
  if (last) reduce_all_kept();
}

void Gradients::reduce_all_kept() {
  for (Chunk& chunk : store_.chunks())
    if (chunk.kept_pending) reduce_kept(chunk);
}

void Gradients::finish_micro_batch(bool last) {
  reduce_open(last);
  for (Chunk& chunk : store_.chunks()) chunk.blocking = 0;
}

void Gradients::drop_held() {
  ++holding_;
  for (Chunk& chunk : store_.chunks()) chunk.grad_held = false;
}

bool Gradients::holds(const Parameter& p) const {
  return p.trained() && p.chunk >= 0 && store_[p.chunk].grad_held && of_this_iteration(p);
}

bool Gradients::keeps(const Parameter& p) const {
  return p.trained() && p.chunk >= 0 && store_[p.chunk].kept_pending && of_this_iteration(p);
}

void Gradients::drop() {
  wait_all();
  for (Chunk& chunk : store_.chunks()) {
    if (chunk.gradient != nullptr && !chunk.spec.resident) give_gradient(chunk);
    chunk.moved_gradient = {};
    chunk.kept_written = chunk.kept_pending = false;
    close(chunk);
    chunk.blocking = 0;
  }
  drop_held();
  for (Parameter& p : registry_.all()) p.grad_produced = false;
}

}  // namespace gemini
