// Plays a policy through a trace as the library would: with one link, on which gathers and reductions pass
// one after the other, and with the caller computing meanwhile.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "placement/policy.hpp"

namespace gemini {

// What is played on.
struct Machine {
  Budget budget;
  Rates rates;
  std::int64_t resting_bytes = 0;  // of compute memory under data that stays there
};

// What one iteration did.
struct Playback {
  bool fits = true;    // false: an operation's own needs exceeded the limit, and the rest was not played
  int stopped_at = 0;  // that operation, else the trace's size
  std::int64_t gathers = 0;
  std::int64_t gathered_bytes = 0;          // by wire
  std::int64_t evicted_arriving_bytes = 0;  // by wire: gathered for nothing
  std::int64_t peak_bytes = 0;              // of compute memory
  std::int64_t compute_ns = 0;              // the caller's
  std::int64_t link_ns = 0;                 // busy with gathers and reductions
  std::int64_t total_ns = 0;
  [[nodiscard]] std::int64_t stall_ns() const { return total_ns - compute_ns; }
  // Share of the link's time that computing hid.
  [[nodiscard]] double hidden() const;
};

class Simulator {
 public:
  // start: copies that are there at first; empty: none.
  Simulator(const std::vector<ChunkFacts>& facts, const Machine& machine,
            std::vector<ChunkStatus> start = {});

  // One iteration; the step at its end reduces gradients that are still open and drops all copies.
  // A policy that knows the order has learnt the trace. Throws where the policy breaks its promises: a leased
  // or needed copy released, a needed one not gathered, the limit exceeded.
  Playback play(const Trace& trace, Policy& policy, bool order_known = true);

  [[nodiscard]] const std::vector<ChunkStatus>& chunks() const { return chunks_; }

 private:
  struct Reduction {
    std::int64_t done_ns;
    std::int64_t bytes;
  };

  void begin(const TraceEvent& event, const Moment& moment, Policy& policy);
  void end(const TraceEvent& event, const Moment& moment, Policy& policy);
  void step();
  void carry_out(const std::vector<Action>& actions, const std::vector<int>& needed);
  void release(int chunk);
  void gather(int chunk);
  void arrive(int chunk);
  void reduce(int chunk);
  void take(std::int64_t bytes);
  void wait_until(std::int64_t ns);
  void wait_for_oldest_reduction();
  std::int64_t pass(double ns);
  [[nodiscard]] std::int64_t unavoidable_bytes(const TraceEvent& event) const;

  std::vector<ChunkFacts> facts_;
  Machine machine_;
  std::vector<ChunkStatus> chunks_;
  std::vector<std::int64_t> arrival_ns_;
  std::deque<Reduction> reductions_;  // unfinished or not yet seen to be done
  std::vector<Action> actions_;
  std::int64_t in_use_ = 0;  // buffers of reductions aside
  std::int64_t leased_ = 0;  // of it, copies under lease
  std::int64_t open_ = 0;    // of it, open gradient buffers
  std::int64_t reducing_ = 0;
  std::int64_t now_ns_ = 0;
  std::int64_t link_free_ns_ = 0;
  Playback played_;
};

}  // namespace gemini
