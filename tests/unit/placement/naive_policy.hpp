// What caches without foresight do, for comparison.
#pragma once

#include <algorithm>
#include <vector>

#include "placement/draft.hpp"
#include "placement/policy.hpp"

namespace gemini {

// Gives up the copy that was gathered (FIFO) or used (LRU) longest ago.
class NaivePolicy final : public Policy {
 public:
  enum class Order { fifo, lru };
  NaivePolicy(const std::vector<ChunkFacts>& facts, const Budget& budget, Order order)
      : facts_(facts), budget_(budget), order_(order), draft_(facts_), since_(facts.size()) {}

  void before(const Need& need, const Moment& moment, const std::vector<ChunkStatus>& chunks,
              std::int64_t in_use_bytes, std::vector<Action>& actions) override {
    draft_.open(need, chunks, in_use_bytes);
    const auto& event = moment.trace->events()[static_cast<std::size_t>(moment.position)];
    while (draft_.filled_bytes() > budget_.soft(event.non_model_bytes)) {
      int oldest = -1;
      for (int c = 0; c < static_cast<int>(chunks.size()); ++c)
        if (draft_.evictable(c) && (oldest < 0 || since(c) < since(oldest))) oldest = c;
      if (oldest < 0) break;
      draft_.release(oldest);
    }
    ++clock_;
    for (const int chunk : *need.chunks)
      if (order_ == Order::lru || chunks[static_cast<std::size_t>(chunk)].copy == ChunkStatus::Copy::absent)
        since(chunk) = clock_;
    draft_.write(actions);
  }

  void after(const std::vector<int>& /*ended*/, const Moment& /*moment*/,
             const std::vector<ChunkStatus>& /*chunks*/, std::vector<Action>& /*actions*/) override {}

 private:
  std::int64_t& since(int chunk) { return since_[static_cast<std::size_t>(chunk)]; }

  std::vector<ChunkFacts> facts_;
  Budget budget_;
  Order order_;
  Draft draft_;
  std::vector<std::int64_t> since_;
  std::int64_t clock_ = 0;
};

}  // namespace gemini
