// What lies in compute memory: carries out what placement decides, and finds room when an operation needs it.
//
// Everything here is chosen from what all ranks know to be equal. The order in which room is made: what the
// policy releases, buffers of reductions in flight, gradients that are open and not leased, shards at rest.
#pragma once

#include <cstdint>
#include <vector>

#include "chunks/chunk_store.hpp"
#include "placement/homes.hpp"
#include "placement/policy.hpp"
#include "training/gradients.hpp"

namespace gemini {

class Residency {
 public:
  // ranks: that share a copy.
  Residency(ChunkStore& store, Gradients& gradients, const Budget& budget, int ranks);
  // Inference has an order of its own to look ahead in, and so a policy of its own.
  void set_policies(Policy* training, Policy* inference) {
    training_ = training;
    inference_ = inference;
  }
  void learn_inference(const Trace& trace) { inference_->learn(trace); }
  // For decisions; they follow what moves.
  [[nodiscard]] const std::vector<ChunkFacts>& facts() const { return facts_; }
  void facts_changed(const Chunk& chunk);

  // Throws GEMINI_ERR_OUT_OF_MEMORY, before anything moves, unless room for the need can be made. ends: a
  // micro-batch ends first.
  void require(const Need& need, bool ends) const;
  // The same on this rank alone, if its workspaces would be in the way of what all ranks will do.
  void require_here(const Need& need, bool ends, const Moment& moment, bool inference) const;
  // Both, for reducing what a micro-batch left open.
  void require_end() const;
  // Throws GEMINI_ERR_OUT_OF_MEMORY on this rank alone if its workspaces would take more than what the ranks
  // agreed to leave free at this moment: decisions count on the rest.
  void require_share(const Moment& moment, std::int64_t more_bytes) const;
  void plan(const Need& need, const Moment& moment, bool inference);
  // Carries it out: the chunks are gathered and there is room for the gradients; the next are
  // asked for.
  void begin(const Need& need, bool inference);
  void end(const std::vector<int>& chunks, const Moment& moment);
  // The same in INFERENCE: what training did not gather goes.
  void end_inference(const std::vector<int>& chunks);
  // Waits for reductions in flight until there is room on this rank, or none is in flight.
  void wait_for_room(std::int64_t bytes);
  // For bytes outside an operation.
  void make_room(std::int64_t bytes);
  // Nothing is leased. Copies go, and nobody reads shards any more.
  void drop_copies();
  void move(Chunk& chunk, Item item, Place to);

  // Everything at rest, and where; busy where it is in use, or will be for this need.
  [[nodiscard]] std::vector<RestingItem> resting(const Need& need) const;
  // What may move between iterations.
  [[nodiscard]] std::vector<RestingItem> movable() const;
  [[nodiscard]] Rooms rooms_below() const;

  [[nodiscard]] std::int64_t hits() const { return hits_; }
  [[nodiscard]] std::int64_t misses() const { return misses_; }
  void reset_counters() { hits_ = misses_ = 0; }

 private:
  [[nodiscard]] std::int64_t bytes_of(const Need& need) const;
  [[nodiscard]] std::int64_t returnable(const Need& need, bool ends) const;
  [[nodiscard]] std::int64_t idle_copies(const Need& need) const;
  // By model data; buffers of reductions in flight can be waited for at any time.
  [[nodiscard]] std::int64_t in_use() const {
    return store_.compute().in_use() - gradients_.in_flight_bytes();
  }
  [[nodiscard]] bool is_busy(const Chunk& chunk, Item item, const Need& need) const;
  [[nodiscard]] bool may_move_down(const Chunk& chunk, const Need& need) const;
  void release_planned();
  void free_up(const Need& need);
  void move_gradients_down(const Need& need, std::int64_t bytes);
  void relieve(const Need& need, std::int64_t bytes);

  ChunkStore& store_;
  Gradients& gradients_;
  Budget budget_;
  int ranks_;
  std::vector<ChunkFacts> facts_;
  Policy* training_ = nullptr;
  Policy* inference_ = nullptr;
  std::vector<Action> actions_;
  std::vector<int> none_;
  std::int64_t hits_ = 0;
  std::int64_t misses_ = 0;
};

}  // namespace gemini
