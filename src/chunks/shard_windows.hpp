// A pass over shards, whichever tiers they lie in: window by window, in order.
//
// What lies in memory is shown where it is, a whole shard at once. What lies in files is streamed through
// three sets of staging buffers: while one window is worked on, the next is read and the one before written.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "chunks/chunk_store.hpp"

namespace gemini {

// Elements [first, first + count) of a shard.
struct ShardWindow {
  Chunk* chunk = nullptr;
  std::int64_t first = 0, count = 0;
  std::array<std::byte*, kItems> at{};  // element `first` of each item; NULL: not there or not touched
};

// Host memory for windows of items in files, one per context.
class Staging {
 public:
  static constexpr int kSets = 3;
  static constexpr std::int64_t kMinElems = 2048;  // a page of the narrowest values

  Staging() = default;
  // window_elems: a multiple of kMinElems.
  Staging(Tier& tier, std::int64_t window_elems);

  [[nodiscard]] static std::int64_t bytes_for(std::int64_t window_elems) {
    return kSets * kItems * window_elems * kWidest;
  }
  [[nodiscard]] std::int64_t window_elems() const { return window_elems_; }
  [[nodiscard]] std::byte* buffer(int set, std::size_t item) const {
    return block_.data() + (set * kItems + static_cast<std::int64_t>(item)) * window_elems_ * kWidest;
  }

 private:
  static constexpr std::int64_t kWidest = 8;  // bytes of an element
  Block block_;
  std::int64_t window_elems_ = 0;
};

class ShardPass {
 public:
  ShardPass(Tiers& tiers, const Staging& staging, Items reads, Items writes)
      : tiers_(tiers), staging_(staging), reads_(reads), writes_(writes) {}
  ~ShardPass();
  ShardPass(const ShardPass&) = delete;
  ShardPass& operator=(const ShardPass&) = delete;

  void add(Chunk& chunk);
  // The next window; the one before is done with. False after the last, when all is written.
  bool next(ShardWindow& window);

 private:
  struct Step {
    Chunk* chunk;
    std::int64_t first, count;
    int set;  // -1: all in memory
    bool reading;
  };
  [[nodiscard]] bool touched(const Chunk& chunk, std::size_t item) const;
  void start_reads(Step& step);
  void start_writes(const Step& step);
  void wait_for(int set);
  [[nodiscard]] ShardWindow window_of(const Step& step) const;
  template <class Transfer>
  void each_staged(const Step& step, Items which, Transfer&& transfer);

  Tiers& tiers_;
  const Staging& staging_;
  Items reads_;
  Items writes_;
  std::vector<Step> steps_;
  std::size_t done_ = 0;  // steps handed out
  int next_set_ = 0;
  std::array<std::vector<Transfer>, Staging::kSets> in_flight_;
};

}  // namespace gemini
