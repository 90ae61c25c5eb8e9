// placement = auto: keep copies while there is room, give up first what is used last, fetch the next ones
// ahead.
#pragma once

#include <cstdint>
#include <vector>

#include "placement/draft.hpp"
#include "placement/forecast.hpp"
#include "placement/policy.hpp"
#include "placement/prefetcher.hpp"

namespace gemini {

class AutoPolicy : public Policy {
 public:
  AutoPolicy(const std::vector<ChunkFacts>& facts, const PolicyRules& rules);

  void before(const Need& need, const Moment& moment, const std::vector<ChunkStatus>& chunks,
              std::int64_t in_use_bytes, std::vector<Action>& actions) override;
  void after(const std::vector<int>& ended, const Moment& moment, const std::vector<ChunkStatus>& chunks,
             std::vector<Action>& actions) override;
  [[nodiscard]] std::int64_t most(const Moment& moment) const override {
    return forecast_.most(moment, rules_.budget);
  }
  [[nodiscard]] bool fetches_ahead() const override { return rules_.prefetch != 0; }
  void learn(const Trace& trace) override;

 protected:
  // Is the copy, whose last lease ended, of use? The order is known.
  [[nodiscard]] virtual bool keeps(int chunk, const Moment& moment) const;
  // The order is known.
  virtual void prefetch(const Moment& moment, const std::vector<ChunkStatus>& chunks);

  [[nodiscard]] const std::vector<ChunkFacts>& facts() const { return facts_; }
  [[nodiscard]] const PolicyRules& rules() const { return rules_; }
  [[nodiscard]] const Forecast& forecast() const { return forecast_; }
  [[nodiscard]] std::int64_t slot(int chunk) const {
    return facts_[static_cast<std::size_t>(chunk)].slot_bytes;
  }
  Draft& draft() { return draft_; }
  Prefetcher& prefetcher() { return prefetcher_; }
  void release(int chunk, const Moment& moment);

 private:
  struct Victim {
    bool gathered;  // not arriving
    int next_use;
    int chunk;
    // The first to go is the greatest.
    friend bool operator<(const Victim& a, const Victim& b) {
      if (a.gathered != b.gathered) return b.gathered;
      return a.next_use != b.next_use ? a.next_use < b.next_use : a.chunk < b.chunk;
    }
  };

  [[nodiscard]] int next_use(int chunk, const Moment& moment) const;
  void make_room(std::int64_t limit_bytes, const Moment& moment, const std::vector<ChunkStatus>& chunks);
  bool make_room_ahead(int chunk, int use, const Moment& moment, const std::vector<ChunkStatus>& chunks);

  const std::vector<ChunkFacts>& facts_;  // the caller's; they change between iterations
  PolicyRules rules_;
  Draft draft_;
  Forecast forecast_;
  Prefetcher prefetcher_;
  std::vector<Victim> victims_;    // a heap while room is made
  std::int64_t filled_bytes_ = 0;  // of compute memory, at most, since the last operation began
};

}  // namespace gemini
