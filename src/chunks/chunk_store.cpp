#include "chunks/chunk_store.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "base/fingerprint.hpp"
#include "chunks/chunk_event.hpp"
#include "chunks/staged_gather.hpp"
#include "collectives/recorded_operation.hpp"
#include "kernels/kernels.hpp"
#include "memory/poison.hpp"

namespace gemini {
namespace {

constexpr const char* kShards = "the shards of this model";
using Copy = ChunkStatus::Copy;

bool keeps_master(const ChunkSpec& spec, const TrainingState& state) {
  return state.master && is_16bit(spec.dtype);
}

// The master copy starts as the shard's values, whichever tiers they lie in.
void fill_master(Tiers& tiers, Chunk& chunk) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 18;  // elements
  const DType from = chunk.spec.dtype;
  const DType to = wide(from);
  std::vector<std::byte> narrow, broad;
  for (std::int64_t first = 0; first < chunk.spec.shard_elems; first += kPiece) {
    const std::int64_t count = std::min(kPiece, chunk.spec.shard_elems - first);
    narrow.resize(static_cast<std::size_t>(count * size_of(from)));
    broad.resize(static_cast<std::size_t>(count * size_of(to)));
    chunk.item(Item::param).load(tiers, first * size_of(from), count * size_of(from), narrow.data());
    kernels::convert(from, narrow.data(), to, broad.data(), count);
    chunk.item(Item::master).store(tiers, first * size_of(to), count * size_of(to), broad.data());
  }
}

}  // namespace

std::int64_t item_bytes(const ChunkSpec& spec, Item item, const TrainingState& state) {
  if (item == Item::param) return whole_pages(spec.shard_elems * size_of(spec.dtype));
  const bool there =
      !spec.frozen &&
      (item == Item::grad_sum || (item == Item::master && keeps_master(spec, state)) ||
       (item == Item::state1 && state.states > 0) || (item == Item::state2 && state.states > 1));
  return there ? whole_pages(spec.shard_elems * size_of(wide(spec.dtype))) : 0;
}

std::int64_t own_slot_bytes(const ChunkSpec& spec, int ranks_per_slot) {
  return spec.elems * size_of(spec.dtype) / ranks_per_slot;
}

std::int64_t resident_bytes(const ChunkSpec& spec, bool needs_slot, int ranks_per_slot) {
  if (!spec.resident) return 0;
  return (needs_slot ? whole_pages(own_slot_bytes(spec, ranks_per_slot)) : 0) +
         (spec.frozen ? 0 : whole_pages(spec.elems * size_of(spec.grad_dtype)));
}

ChunkStore::ChunkStore(const std::vector<TensorSpec>& tensors, Layout layout, int rank, Tiers& tiers,
                       Transport& transport, CommQueue& queue, const HomeOf& home)
    : layout_(std::move(layout)),
      rank_(rank),
      tiers_(tiers),
      transport_(transport),
      queue_(queue),
      chunks_(layout_.chunks.size()),
      statuses_(layout_.chunks.size()) {
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    Chunk& chunk = chunks_[c];
    chunk.spec = layout_.chunks[c];
    chunk.index = static_cast<int>(c);
    chunk.status = &statuses_[c];
    chunk.status->leases = chunk.spec.resident ? 1 : 0;  // ours, for ever
    chunk.pieces = pieces_of_shard(layout_, tensors, chunk.index, rank);
    chunk.item(Item::param) =
        Stored(tiers_, home(chunk.index, Item::param), chunk.spec.shard_elems * size_of(chunk.spec.dtype),
               kShards, transport_.shard_pages(chunk.index));
    chunk.tensors_in[static_cast<std::size_t>(TensorState::hold)] =
        static_cast<int>(chunk.spec.tensors.size());
  }
}

ChunkStore::~ChunkStore() {
  for (Chunk& chunk : chunks_) {
    if (chunk.slot != nullptr) give_slot(chunk);
    if (chunk.gradient != nullptr) give_gradient_slot(chunk, chunk.gradient);
    if (chunk.landing != nullptr) compute().give_slot(chunk.landing, chunk.sum_bytes());
  }
}

void ChunkStore::add_training_state(Chunk& chunk, const TrainingState& state, const HomeOf& home) {
  if (keeps_master(chunk.spec, state)) {
    chunk.item(Item::master) = Stored(tiers_, home(chunk.index, Item::master), chunk.sum_bytes(), kShards);
    fill_master(tiers_, chunk);
  }
  chunk.item(Item::grad_sum) = Stored(tiers_, home(chunk.index, Item::grad_sum), chunk.sum_bytes(), kShards);
  set_state_count(chunk, state.states, home);
}

void ChunkStore::set_state_count(Chunk& chunk, int states, const HomeOf& home) {
  for (const Item item : {Item::state1, Item::state2})
    if (states-- > 0 && !chunk.item(item))
      chunk.item(item) = Stored(tiers_, home(chunk.index, item), chunk.sum_bytes(), kShards);
}

void ChunkStore::move(Chunk& chunk, Item item, Place to) {
  ensure(item != Item::param || !chunk.status->present(), "a shard moves while nobody gathers it");
  const TimelineSpan span(
      timeline_, chunk_move(chunk, name_of(item), chunk.item(item).bytes(), chunk.item(item).place(), to));
  const bool leaves = item == Item::param && chunk.item(item).place() == Place::compute;
  if (leaves)
    if (auto vacated = transport_.vacate(chunk.index))
      queue_.run(std::move(vacated), "ranks that still read a shard that is to move");
  chunk.item(item).move_to(tiers_, to, kShards);
  if (item == Item::param) publish(chunk);
}

void ChunkStore::give_slot(Chunk& chunk) noexcept {
  compute().give_slot(std::exchange(chunk.slot, nullptr),
                      own_slot_bytes(chunk.spec, transport_.ranks_per_slot()),
                      transport_.close_slot(chunk.index));
}

std::byte* ChunkStore::take_gradient_slot(const Chunk& chunk) {
  return compute().take_slot(chunk.gradient_bytes(), "the gradients of this operation",
                             transport_.gradient_pages());
}

void ChunkStore::give_gradient_slot(const Chunk& chunk, std::byte* slot) noexcept {
  compute().give_slot(slot, chunk.gradient_bytes(), transport_.gradient_pages());
}

ShardedChunk ChunkStore::sharded(const Chunk& chunk) const {
  return {chunk.spec.shard_elems, chunk.spec.dtype, chunk.item(Item::param).data(), chunk.index};
}

std::int64_t ChunkStore::slot_bytes(const Chunk& chunk) const {
  const bool shard_is_copy = !transport_.needs_slot() && chunk.item(Item::param).place() == Place::compute;
  return shard_is_copy ? 0 : own_slot_bytes(chunk.spec, transport_.ranks_per_slot());
}

std::byte* ChunkStore::gathered(const Chunk& chunk) const {
  return transport_.view(sharded(chunk), chunk.slot);
}

// A shard of a lower tier is brought to its place in the slot first.
std::unique_ptr<Operation> ChunkStore::gather_operation(Chunk& chunk) {
  Stored& shard = chunk.item(Item::param);
  ShardedChunk staged = sharded(chunk);
  if (shard.place() == Place::compute) return transport_.acquire(staged, chunk.slot);
  staged.shard = chunk.slot + rank_ * staged.shard_bytes();
  tiers_.moved_bytes += staged.shard_bytes();
  auto clear = transport_.clear_slot(chunk.index);
  return std::make_unique<StagedGather>(tiers_, shard, staged.shard_bytes(), staged.shard, std::move(clear),
                                        transport_.acquire(staged, chunk.slot));
}

void ChunkStore::take_gather_ticket(Chunk& chunk, bool ahead) {
  ++counters_.gathers;
  chunk.arrival = 0;
  if (auto gather = gather_operation(chunk)) {
    TimelineEvent event = chunk_event(TimelineEvent::Track::gathers, chunk, "gather", chunk.gathered_bytes());
    event.ahead = ahead;
    chunk.arrival = queue_.submit_background(recorded(std::move(gather), timeline_, event));
  }
  chunk.status->copy = Copy::arriving;
}

void ChunkStore::fetch(Chunk& chunk, bool ahead) {
  const std::int64_t bytes = slot_bytes(chunk);
  if (bytes > 0)
    chunk.slot =
        compute().take_slot(bytes, "the chunks of this operation", transport_.open_slot(chunk.index));
  take_gather_ticket(chunk, ahead);
  counters_.gathered_bytes += chunk.gathered_bytes();
  counters_.gathered_peak_bytes = std::max(counters_.gathered_peak_bytes, counters_.gathered_bytes);
}

void ChunkStore::refresh(Chunk& chunk) {
  await(chunk);
  take_gather_ticket(chunk, false);
}

void ChunkStore::await(Chunk& chunk) {
  if (chunk.status->copy != Copy::arriving) return;
  queue_.wait(chunk.arrival, "gathering the parameters of an operation");
  chunk.status->copy = Copy::gathered;
  if constexpr (kDebugMemory) {
    chunk.checksum = fingerprint(gathered(chunk), chunk.gathered_bytes());
    chunk.write_told = false;
  }
}

void ChunkStore::release(Chunk& chunk) {
  ensure(chunk.status->present() && chunk.status->leases == 0,
         "only a gathered chunk without leases is released");
  await(chunk);
  transport_.leave(chunk.index);
  if (chunk.slot != nullptr) give_slot(chunk);
  chunk.status->copy = Copy::absent;
  chunk.status->transient = false;
  counters_.gathered_bytes -= chunk.gathered_bytes();
}

void ChunkStore::check_unwritten(Chunk& chunk) {
  if constexpr (kDebugMemory) {
    if (chunk.write_told || fingerprint(gathered(chunk), chunk.gathered_bytes()) == chunk.checksum) return;
    chunk.write_told = true;
    fail(GEMINI_ERR_STATE,
         "values of chunk {} were changed inside a lease; gemini_param_data is read only, use "
         "gemini_param_set (said "
         "once: the call may be repeated)",
         chunk.index);
  }
}

void ChunkStore::reset_counters() {
  counters_.gathers = 0;
  counters_.gathered_peak_bytes = counters_.gathered_bytes;
}

ChunkStore::Bytes ChunkStore::shard_bytes() const {
  Bytes bytes;
  for (const Chunk& chunk : chunks_) {
    bytes.param += chunk.item(Item::param).bytes() + chunk.item(Item::master).bytes();
    bytes.grad += chunk.item(Item::grad_sum).bytes();
    bytes.optimizer += chunk.item(Item::state1).bytes() + chunk.item(Item::state2).bytes();
  }
  return bytes;
}

}  // namespace gemini
