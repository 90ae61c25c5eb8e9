// What the ranks of a node have together: the segment, which part of it this rank takes from the machine, and
// the hand-over of gradients.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/agreement.hpp"
#include "collectives/shared_pages.hpp"
#include "collectives/transport.hpp"

namespace gemini {

class SharedNode {
 public:
  // What the memory of a chunk's part shows: the part, this rank's shard, or the chunk, of which the rank has
  // taken its part.
  enum class Shows { part, chunk };

  // One of `nodes` sets of ranks, each with a segment of its own; this rank is `me` of `ranks` in it.
  struct Seat {
    int nodes, node, me, ranks;
    Shows shows;
  };
  explicit SharedNode(const Seat& seat)
      : nodes_(seat.nodes), node_(seat.node), me_(seat.me), ranks_(seat.ranks), shows_(seat.shows) {}

  // Makes the segments; every rank of the context calls, with the same chunks. Says why not, or "": what one
  // rank is refused is shared by none, for good.
  std::string share(Agreement& agreement, const std::vector<SharedChunk>& chunks);
  [[nodiscard]] bool declined() const { return declined_; }
  explicit operator bool() const { return static_cast<bool>(segment_); }

  [[nodiscard]] int me() const { return me_; }
  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] const SharedSegment& segment() const { return segment_; }
  [[nodiscard]] std::byte* chunk(int index) const {
    return segment_.memory().data() + segment_.chunk_at(index);
  }
  // This rank's part of a chunk: an equal share of its bytes.
  [[nodiscard]] PartPages& part(int chunk) { return parts_[static_cast<std::size_t>(chunk)]; }
  [[nodiscard]] PageSource& gradients() { return *gradients_; }

  // The buffer is final: peers may read it. Returns its number in the order of hand-over.
  std::uint32_t hand_over(const std::byte* gradient);

 private:
  void create(std::int64_t& number, std::int64_t& nonce);
  void open(std::int64_t number, std::int64_t nonce);
  void reserve_range(std::int64_t offset, std::int64_t bytes);
  void reserve(const std::vector<SharedChunk>& chunks);
  void check_room(const std::vector<SharedChunk>& chunks) const;
  void prepare(const std::vector<SharedChunk>& chunks);

  int nodes_, node_, me_, ranks_;
  Shows shows_;
  SharedSegment segment_;
  bool declined_ = false;
  std::deque<PartPages> parts_;
  std::optional<GradientPages> gradients_;
  std::uint32_t handed_ = 0;
};

// Complete when a counter of every rank has reached a value. It takes a place in the queue even where there
// is nothing to wait for: places mean the same on all ranks.
class CounterWait final : public Operation {
 public:
  CounterWait(const SharedSegment::Counter* first, int ranks, std::uint32_t value)
      : first_(first), ranks_(ranks), value_(value) {}
  bool poll() override { return all_reached(first_, ranks_, value_); }

 private:
  const SharedSegment::Counter* first_;
  int ranks_;
  std::uint32_t value_;
};

}  // namespace gemini
