#include "chunks/chunk_store.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "base/fingerprint.hpp"
#include "kernels/kernels.hpp"
#include "memory/poison.hpp"

namespace gemini {
namespace {

constexpr const char* kShards = "the shards of this model";

std::int64_t wide_bytes(const ChunkSpec& spec) {
  return spec.shard_elems * size_of(wide(spec.dtype));
}

bool keeps_master(const ChunkSpec& spec, const TrainingState& state) {
  return state.master && is_16bit(spec.dtype);
}

}  // namespace

ChunkStore::ChunkStore(const std::vector<TensorSpec>& tensors, Layout layout, int rank, Tier& tier,
                       Transport& transport, CommQueue& queue)
    : layout_(std::move(layout)),
      tier_(tier),
      transport_(transport),
      queue_(queue),
      chunks_(layout_.chunks.size()) {
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    Chunk& chunk = chunks_[c];
    chunk.spec = layout_.chunks[c];
    chunk.index = static_cast<int>(c);
    chunk.pieces = pieces_of_shard(layout_, tensors, chunk.index, rank);
    chunk.shard = tier_.allocate(chunk.spec.shard_elems * size_of(chunk.spec.dtype), kShards);
    chunk.tensors_in[static_cast<std::size_t>(TensorState::hold)] =
        static_cast<int>(chunk.spec.tensors.size());
  }
}

ChunkStore::~ChunkStore() {
  for (Chunk& chunk : chunks_) {
    if (chunk.slot != nullptr) tier_.give_slot(chunk.slot, slot_bytes(chunk));
    if (chunk.gradient != nullptr) tier_.give_slot(chunk.gradient, chunk.gradient_bytes());
  }
}

std::int64_t ChunkStore::bytes_needed(const Layout& layout, const TrainingState& state, bool needs_slot) {
  std::int64_t bytes = 0;
  for (const ChunkSpec& spec : layout.chunks) {
    std::int64_t chunk = Tier::rounded(spec.shard_elems * size_of(spec.dtype));
    if (spec.resident && needs_slot) chunk += Tier::rounded(spec.elems * size_of(spec.dtype));
    if (!spec.frozen) chunk += training_bytes(spec, state);
    if (__builtin_add_overflow(bytes, chunk, &bytes)) return std::numeric_limits<std::int64_t>::max();
  }
  return bytes;
}

// The gradient buffer of a RESIDENT chunk is kept, since its operations may differ over ranks.
std::int64_t ChunkStore::training_bytes(const ChunkSpec& spec, const TrainingState& state) {
  const std::int64_t arrays = 1 + state.states + (keeps_master(spec, state) ? 1 : 0);
  const std::int64_t buffer = spec.resident ? Tier::rounded(spec.elems * size_of(spec.grad_dtype)) : 0;
  return arrays * Tier::rounded(wide_bytes(spec)) + buffer;
}

void ChunkStore::add_training_state(Chunk& chunk, const TrainingState& state) {
  if (keeps_master(chunk.spec, state)) {
    chunk.master = tier_.allocate(wide_bytes(chunk.spec), kShards);
    kernels::convert(chunk.spec.dtype, chunk.shard.data(), wide(chunk.spec.dtype), chunk.master.data(),
                     chunk.spec.shard_elems);
  }
  chunk.grad_sum = tier_.allocate(wide_bytes(chunk.spec), kShards);
  set_state_count(chunk, state.states);
}

void ChunkStore::set_state_count(Chunk& chunk, int states) {
  while (static_cast<int>(chunk.states.size()) < states)
    chunk.states.push_back(tier_.allocate(wide_bytes(chunk.spec), kShards));
}

std::int64_t ChunkStore::slot_bytes(const Chunk& chunk) const {
  return transport_.needs_slot() ? chunk.gathered_bytes() : 0;
}

void ChunkStore::gather(const std::vector<int>& chunks) {
  take_slots(chunks);
  acquire(chunks);
  for (const int index : chunks) {
    (*this)[index].gathered = true;
    counters_.gathered_bytes += (*this)[index].gathered_bytes();
  }
  counters_.gathered_peak_bytes = std::max(counters_.gathered_peak_bytes, counters_.gathered_bytes);
}

// All of them or none.
void ChunkStore::take_slots(const std::vector<int>& chunks) {
  if (!transport_.needs_slot()) return;
  for (auto at = chunks.begin(); at != chunks.end(); ++at) {
    Chunk& chunk = (*this)[*at];
    try {
      chunk.slot = tier_.take_slot(slot_bytes(chunk), "the chunks of this operation");
    } catch (...) {
      for (auto taken = chunks.begin(); taken != at; ++taken)
        tier_.give_slot(std::exchange((*this)[*taken].slot, nullptr), slot_bytes((*this)[*taken]));
      throw;
    }
  }
}

void ChunkStore::refresh(const std::vector<int>& chunks) {
  acquire(chunks);
}

void ChunkStore::acquire(const std::vector<int>& chunks) {
  if (chunks.empty()) return;
  Ticket last = 0;
  for (const int index : chunks)
    last = queue_.submit(transport_.acquire((*this)[index].sharded(), (*this)[index].slot));
  queue_.wait(last, "gathering the parameters of an operation");
  counters_.gathers += static_cast<std::int64_t>(chunks.size());
  if constexpr (kDebugMemory)
    for (const int index : chunks) {
      Chunk& chunk = (*this)[index];
      chunk.checksum = fingerprint(gathered(chunk), chunk.gathered_bytes());
      chunk.write_told = false;
    }
}

void ChunkStore::release(int index) {
  Chunk& chunk = (*this)[index];
  ensure(chunk.gathered && chunk.leases == 0, "only a gathered chunk without leases is released");
  if (chunk.slot != nullptr) tier_.give_slot(chunk.slot, slot_bytes(chunk));
  chunk.slot = nullptr;
  chunk.gathered = false;
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
    const std::int64_t wide_size = wide_bytes(chunk.spec);
    bytes.param += chunk.sharded().shard_bytes() + (chunk.master ? wide_size : 0);
    bytes.grad += chunk.grad_sum ? wide_size : 0;
    bytes.optimizer += wide_size * static_cast<std::int64_t>(chunk.states.size());
  }
  return bytes;
}

}  // namespace gemini
