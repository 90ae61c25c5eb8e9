// Gradients: from whole buffers into the sums of the shards.
#include <cstring>
#include <utility>

#include "chunks/chunk_event.hpp"
#include "collectives/recorded_operation.hpp"
#include "kernels/kernels.hpp"
#include "training/gradients.hpp"

namespace gemini {

// The buffer is done with: it is reduced, or added to what this rank keeps.
void Gradients::end_buffer(Chunk& chunk, bool last) {
  const bool mine = written(chunk);
  if (mine) zero_unwritten(chunk);
  if (rules_.local) {
    keep(chunk, mine);
    if (last) reduce_kept(chunk);
    if (!chunk.spec.resident) give_gradient(chunk);
  } else {
    std::byte* buffer = chunk.gradient;
    if (!chunk.spec.resident) chunk.gradient = nullptr;
    reduce(chunk, chunk.spec.grad_dtype, mine ? buffer : nullptr, chunk.spec.resident ? nullptr : buffer);
  }
  watch_(chunk.index, false);
  close(chunk);
}

void Gradients::keep(Chunk& chunk, bool mine) {
  chunk.kept_pending = true;
  if (!mine) return;
  queue_.wait(chunk.reduction, "the last reduction of a kept gradient");
  if (!chunk.kept_written) std::memset(chunk.kept.data(), 0, static_cast<std::size_t>(chunk.kept.bytes()));
  kernels::add(chunk.spec.grad_dtype, chunk.gradient, chunk.kept.data(), chunk.spec.elems);
  chunk.kept_written = true;
}

void Gradients::reduce_kept(Chunk& chunk) {
  reduce(chunk, wide(chunk.spec.dtype), chunk.kept_written ? chunk.kept.data() : nullptr, nullptr);
  chunk.kept_written = chunk.kept_pending = false;
}

// gradient: NULL stands for zeros. buffer: given back when the reduction is done.
void Gradients::reduce(Chunk& chunk, DType dtype, const std::byte* gradient, std::byte* buffer) {
  if (lands(chunk)) prepare_landing(chunk);
  std::byte* landing = std::exchange(chunk.landing, nullptr);
  const GradientReduction reduction{chunk.spec.shard_elems,
                                    dtype,
                                    gradient,
                                    landing != nullptr ? landing : chunk.item(Item::grad_sum).data(),
                                    !chunk.grad_held,
                                    rules_.divisor,
                                    !rules_.local};
  const TimelineEvent event =
      chunk_event(TimelineEvent::Track::reductions, chunk, "reduce", chunk.spec.elems * size_of(dtype));
  chunk.reduction =
      queue_.submit_background(recorded(transport_.reduce(reduction), store_.timeline(), event));
  chunk.grad_held = true;
  ++reduces_;
  const std::int64_t bytes = (buffer != nullptr ? whole_pages(chunk.gradient_bytes()) : 0) +
                             (landing != nullptr ? whole_pages(chunk.sum_bytes()) : 0);
  in_flight_.push_back({&chunk, chunk.reduction, buffer, landing, bytes});
  in_flight_bytes_ += bytes;
  while (in_flight_.size() > (rules_.asynchronous ? kInFlight : 0)) wait_oldest();
}

// The sum so far is in the file; a reduction of this chunk may still be on its way there.
void Gradients::prepare_landing(Chunk& chunk) {
  while (is_in_flight(chunk)) wait_oldest();
  if (chunk.landing == nullptr) {
    make_room_(whole_pages(chunk.sum_bytes()));
    chunk.landing = store_.compute().take_slot(chunk.sum_bytes(), "the sums of gradients");
  }
  if (chunk.grad_held) chunk.item(Item::grad_sum).load(store_.tiers(), 0, chunk.sum_bytes(), chunk.landing);
}

bool Gradients::is_in_flight(const Chunk& chunk) const {
  for (const InFlight& reduction : in_flight_)
    if (reduction.chunk == &chunk) return true;
  return false;
}

bool Gradients::wait_oldest() {
  if (in_flight_.empty()) return false;
  const InFlight oldest = in_flight_.front();
  queue_.wait(oldest.ticket, "reducing gradients");
  in_flight_.pop_front();
  in_flight_bytes_ -= oldest.bytes;
  Chunk& chunk = *oldest.chunk;
  if (oldest.buffer != nullptr) store_.give_gradient_slot(chunk, oldest.buffer);
  if (oldest.landing != nullptr) {
    chunk.item(Item::grad_sum).store(store_.tiers(), 0, chunk.sum_bytes(), oldest.landing);
    store_.compute().give_slot(oldest.landing, chunk.sum_bytes());
  }
  return true;
}

}  // namespace gemini
