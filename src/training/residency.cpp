#include "training/residency.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "training/must.hpp"

namespace gemini {
namespace {

constexpr const char* kOperation = "the chunks of this operation";
using Kind = Action::Kind;

bool needed(const Need& need, int chunk) {
  return std::find(need.chunks->begin(), need.chunks->end(), chunk) != need.chunks->end();
}

}  // namespace

Residency::Residency(ChunkStore& store, Gradients& gradients, const Budget& budget, int ranks)
    : store_(store), gradients_(gradients), budget_(budget), ranks_(ranks), facts_(store.chunks().size()) {
  for (const Chunk& chunk : store_.chunks()) facts_changed(chunk);
}

// RESIDENT chunks take part in no decision.
void Residency::facts_changed(const Chunk& chunk) {
  if (chunk.spec.resident) return;
  ChunkFacts& facts = facts_[static_cast<std::size_t>(chunk.index)];
  facts.slot_bytes = whole_pages(store_.slot_bytes(chunk));
  facts.gradient_bytes = chunk.trained() ? Gradients::bytes_when_open(chunk) : 0;
  facts.wire_bytes = ranks_ > 1 && facts.slot_bytes > 0 ? chunk.gathered_bytes() : 0;
}

std::int64_t Residency::bytes_of(const Need& need) const {
  std::int64_t bytes = need.gradient_bytes;
  for (const int chunk : *need.chunks)
    if (!store_.statuses()[static_cast<std::size_t>(chunk)].present())
      bytes += whole_pages(store_.slot_bytes(store_[chunk]));
  return bytes;
}

bool Residency::may_move_down(const Chunk& chunk, const Need& need) const {
  return chunk.status->gradient_open && !chunk.spec.resident && !needed(need, chunk.index) &&
         chunk.tensors_in[static_cast<std::size_t>(TensorState::compute)] == 0;
}

// What could leave compute memory for this need. Gradients and shards go where there is room below.
std::int64_t Residency::returnable(const Need& need, bool ends) const {
  std::int64_t bytes = ends ? gradients_.buffer_bytes() : gradients_.in_flight_bytes();
  Rooms below = rooms_below();
  for (const Chunk& chunk : store_.chunks()) {
    if (chunk.spec.resident || needed(need, chunk.index)) continue;
    Place to{};
    if (!ends && may_move_down(chunk, need) && put_below(below, whole_pages(chunk.gradient_bytes()), to))
      bytes += gradients_.buffer_bytes(chunk);
  }
  return bytes + idle_copies(need) + movable_bytes(resting(need), below);
}

std::int64_t Residency::idle_copies(const Need& need) const {
  std::int64_t bytes = 0;
  for (const Chunk& chunk : store_.chunks())
    if (chunk.slot != nullptr && chunk.status->leases == 0 && !needed(need, chunk.index))
      bytes += whole_pages(store_.slot_bytes(chunk));
  return bytes;
}

void Residency::require(const Need& need, bool ends) const {
  const std::int64_t bytes = bytes_of(need);
  const Tier& tier = store_.compute();
  if (bytes == 0 || tier.fits(bytes)) return;
  const std::int64_t returning = returnable(need, ends);
  if (!tier.fits(bytes - returning)) tier.require(bytes, kOperation, returning);
}

// Copies go until what is left is what the policy allows; it may fetch others up to there. What must go down
// then does so until there is room on all ranks, which is none for workspaces.
void Residency::require_here(const Need& need, bool ends, const Moment& moment, bool inference) const {
  const std::int64_t guests = store_.compute().guests();
  if (guests == 0) return;
  const std::int64_t bytes = bytes_of(need);
  const Policy& policy = *(inference ? inference_ : training_);
  const bool fetches = moment.trace != nullptr && policy.fetches_ahead();
  if (bytes == 0 && !fetches) return;
  const std::int64_t given_back = ends ? gradients_.buffer_bytes() - gradients_.in_flight_bytes() : 0;
  const std::int64_t wanted = in_use() - given_back + bytes;
  const std::int64_t allowed = policy.most(moment);
  const std::int64_t most =
      std::max(wanted - idle_copies(need), fetches ? allowed : std::min(wanted, allowed));
  const std::int64_t left = budget_.hard() - std::min(most, budget_.hard());
  if (guests > left)
    fail(GEMINI_ERR_OUT_OF_MEMORY,
         "this call needs {}, which of device_memory = {} leaves {} on this rank, whose workspaces take {}; "
         "free some and call again",
         text::format_bytes(bytes), text::format_bytes(budget_.hard()), text::format_bytes(left),
         text::format_bytes(guests));
}

void Residency::require_end() const {
  const Need need{&none_, gradients_.bytes_to_finish()};
  require(need, false);
  require_here(need, false, {}, false);
}

void Residency::require_share(const Moment& moment, std::int64_t more_bytes) const {
  if (moment.trace == nullptr) return;
  const TraceEvent& event = moment.trace->events()[static_cast<std::size_t>(moment.position)];
  const std::int64_t share = budget_.hard() - budget_.soft(event.non_model_bytes);
  const std::int64_t guests = store_.compute().guests() + more_bytes;
  if (guests > share)
    fail(GEMINI_ERR_OUT_OF_MEMORY,
         "the workspaces of this rank take {}, of which the ranks agreed to leave {} at this operation; free "
         "some and call again, the next iteration will count with them",
         text::format_bytes(guests), text::format_bytes(share));
}

void Residency::plan(const Need& need, const Moment& moment, bool inference) {
  actions_.clear();
  (inference ? inference_ : training_)->before(need, moment, store_.statuses(), in_use(), actions_);
}

void Residency::release_planned() {
  for (const Action& action : actions_)
    if (action.kind == Kind::release) store_.release(store_[action.chunk]);
}

void Residency::begin(const Need& need, bool inference) {
  release_planned();
  free_up(need);
  for (const int index : *need.chunks) {
    Chunk& chunk = store_[index];
    if (!chunk.status->present()) {
      ++misses_;
      store_.fetch(chunk);
      chunk.status->transient = inference;
    } else if (chunk.status->copy == ChunkStatus::Copy::arriving) {
      ++hits_;
    }
    if (!inference) chunk.status->transient = false;
  }
  for (const int index : *need.chunks) store_.await(store_[index]);
  for (const Action& action : actions_) {
    if (action.kind != Kind::prefetch) continue;
    Chunk& chunk = store_[action.chunk];
    const std::int64_t bytes = whole_pages(store_.slot_bytes(chunk)) + need.gradient_bytes;
    if (bytes > budget_.hard() - in_use()) break;
    wait_for_room(bytes);
    store_.fetch(chunk, true);
    chunk.status->transient = inference;
  }
}

void Residency::end(const std::vector<int>& chunks, const Moment& moment) {
  actions_.clear();
  training_->after(chunks, moment, store_.statuses(), actions_);
  for (const Action& action : actions_) store_.release(store_[action.chunk]);
}

void Residency::end_inference(const std::vector<int>& chunks) {
  for (const int index : chunks) {
    Chunk& chunk = store_[index];
    if (chunk.status->transient && chunk.status->leases == 0) store_.release(chunk);
  }
}

void Residency::make_room(std::int64_t bytes) {
  const Need need{&none_, bytes};
  actions_.clear();
  training_->before(need, {}, store_.statuses(), in_use(), actions_);
  release_planned();
  free_up(need);
}

// The policy has released copies; reductions in flight hold buffers, and waiting for them sends nothing.
void Residency::free_up(const Need& need) {
  const std::int64_t bytes = bytes_of(need);
  Tier& tier = store_.compute();
  while (!tier.fits(bytes) && gradients_.wait_oldest()) {
  }
  if (!tier.fits(bytes)) move_gradients_down(need, bytes);
  if (!tier.fits(bytes)) relieve(need, bytes);
  wait_for_room(bytes);
}

// How many reductions a rank has waited for is its own affair: workspaces differ.
void Residency::wait_for_room(std::int64_t bytes) {
  while (!store_.compute().fits_here(bytes) && gradients_.wait_oldest()) {
  }
}

void Residency::move_gradients_down(const Need& need, std::int64_t bytes) {
  for (Chunk& chunk : store_.chunks()) {
    if (store_.compute().fits(bytes)) return;
    Rooms below = rooms_below();
    Place to{};
    if (may_move_down(chunk, need) && put_below(below, whole_pages(chunk.gradient_bytes()), to))
      must([&] { gradients_.move_down(chunk, to); });
  }
}

void Residency::relieve(const Need& need, std::int64_t bytes) {
  const std::int64_t missing = bytes - store_.compute().room();
  for (const HomeMove& move : relief(resting(need), missing, rooms_below()))
    must([&] { this->move(store_[move.chunk], move.item, move.to); });
}

void Residency::drop_copies() {
  for (Chunk& chunk : store_.chunks()) {
    if (chunk.spec.resident)
      store_.await(chunk);
    else if (chunk.status->present())
      store_.release(chunk);
  }
}

void Residency::move(Chunk& chunk, Item item, Place to) {
  store_.move(chunk, item, to);
  facts_changed(chunk);
}

std::vector<RestingItem> Residency::movable() const {
  std::vector<RestingItem> items = resting({&none_, 0});
  const auto busy = [](const RestingItem& item) { return item.busy; };
  items.erase(std::remove_if(items.begin(), items.end(), busy), items.end());
  return items;
}

// A sum stays where it is while a buffer is on its way into it, and so does what the operation is about to
// use.
bool Residency::is_busy(const Chunk& chunk, Item item, const Need& need) const {
  if (chunk.spec.resident) return true;
  if (item == Item::grad_sum)
    return chunk.gradient != nullptr || chunk.moved_gradient || needed(need, chunk.index);
  if (item != Item::param) return false;
  const bool is_the_copy = store_.slot_bytes(chunk) == 0;
  return chunk.status->present() || (is_the_copy && needed(need, chunk.index));
}

std::vector<RestingItem> Residency::resting(const Need& need) const {
  std::vector<RestingItem> items;
  for (const Chunk& chunk : store_.chunks())
    for (int i = 0; i < kItems; ++i) {
      const auto item = static_cast<Item>(i);
      const Stored& stored = chunk.item(item);
      if (stored)
        items.push_back(
            {chunk.index, item, whole_pages(stored.bytes()), stored.place(), is_busy(chunk, item, need)});
    }
  return items;
}

Rooms Residency::rooms_below() const {
  return {0, store_.tiers().host.room(), store_.tiers().files != nullptr};
}

}  // namespace gemini
