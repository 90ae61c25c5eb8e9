// Placement decides and does nothing: lists of actions from what all ranks know to be equal.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "chunks/chunk_status.hpp"
#include "placement/trace.hpp"

namespace gemini {

// What never changes about a chunk.
struct ChunkFacts {
  std::int64_t slot_bytes = 0;      // of compute memory that a gathered copy takes
  std::int64_t gradient_bytes = 0;  // of compute memory that its whole gradient takes; 0: not trained
  std::int64_t wire_bytes = 0;      // of a gather, as Rates count them
};

struct Action {
  enum class Kind : std::uint8_t {
    release,   // drop the copy; if it is arriving, wait first
    gather,    // fetch and wait
    prefetch,  // fetch
  } kind;
  int chunk;
  friend bool operator==(const Action& a, const Action& b) { return a.kind == b.kind && a.chunk == b.chunk; }
};

// Compute memory as decisions see it.
struct Budget {
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max() / 2;

  std::int64_t limit_bytes = -1;  // never exceeded; -1: none
  double fraction = 1.0;          // of the limit that model and other data may fill together

  [[nodiscard]] std::int64_t hard() const { return limit_bytes < 0 ? kUnlimited : limit_bytes; }
  // What copies that nobody needs at the moment may fill model data up to.
  [[nodiscard]] std::int64_t soft(std::int64_t non_model_bytes) const {
    if (limit_bytes < 0) return kUnlimited;
    const auto share = static_cast<std::int64_t>(fraction * static_cast<double>(limit_bytes));
    return std::max<std::int64_t>(share - non_model_bytes, 0);
  }
};

// Where the caller is.
struct Moment {
  const Trace* trace = nullptr;  // NULL: the order is not known (first iteration, changed order)
  int position = 0;              // of the event that happens now, in trace
};

struct Need {
  const std::vector<int>* chunks = nullptr;  // that the operation leases
  std::int64_t gradient_bytes = 0;           // that it opens
};

class Policy {
 public:
  virtual ~Policy() = default;
  // An operation is about to begin, and has handed over the gradients that it closes. in_use_bytes: of
  // compute memory by model data, buffers of reductions in flight aside (they can be waited for). Appends
  // releases, then gathers for all needed chunks that are absent, then prefetches. Never releases what is
  // needed or leased.
  virtual void before(const Need& need, const Moment& moment, const std::vector<ChunkStatus>& chunks,
                      std::int64_t in_use_bytes, std::vector<Action>& actions) = 0;
  // Leases on these chunks ended, and gradients that this closes have been handed over; appends releases.
  // Never releases what is leased.
  virtual void after(const std::vector<int>& ended, const Moment& moment,
                     const std::vector<ChunkStatus>& chunks, std::vector<Action>& actions) = 0;
  // Up to where, by its decision at this moment, copies that nobody needs may fill compute memory: those that
  // are there and, if it fetches ahead, new ones.
  [[nodiscard]] virtual std::int64_t most(const Moment& /*moment*/) const { return 0; }
  [[nodiscard]] virtual bool fetches_ahead() const { return false; }
  // The order is known (or known anew): before the first event of an iteration. Moments name no other trace
  // until the next call.
  virtual void learn(const Trace& /*trace*/) {}
};

// How fast data moves, agreed over ranks: the slowest. For choosing when to start, never for what.
struct Rates {
  double gather_ns_per_byte = 0;  // of wire_bytes
  double gather_latency_ns = 0;
  double reduce_ns_per_byte = 0;  // of gradient_bytes
};

// `prefetch = auto` of the auto policy, which knows no rates: one that arrives while the present operation
// runs, and one for an operation that is shorter than its gather.
inline constexpr int kAutoDepth = 2;

struct PolicyRules {
  Budget budget;
  int prefetch = 0;       // chunks on their way at most; -1: auto
  double keep_share = 0;  // static: share of the chunks, by bytes, that stay gathered after use
};

// placement = static, auto, planned. facts outlives the policy and may change between events: where a shard
// rests changes what its copy takes.
std::unique_ptr<Policy> make_static_policy(const std::vector<ChunkFacts>& facts, const PolicyRules& rules);
std::unique_ptr<Policy> make_auto_policy(const std::vector<ChunkFacts>& facts, const PolicyRules& rules);
// rates: of the moment, read when a trace is learnt.
std::unique_ptr<Policy> make_planned_policy(const std::vector<ChunkFacts>& facts, const PolicyRules& rules,
                                            const Rates* rates);

}  // namespace gemini
