// placement = static: gather on use, release after, but for a fixed share of the chunks.
#include "placement/draft.hpp"
#include "placement/forecast.hpp"
#include "placement/policy.hpp"
#include "placement/prefetcher.hpp"

namespace gemini {
namespace {

// A copy that needs no memory of its own still counts.
std::int64_t weight(const ChunkFacts& chunk) {
  return std::max<std::int64_t>(chunk.slot_bytes, 1);
}

// Chunks from the first on that together take no more than the share of all slot bytes.
int chunks_kept(const std::vector<ChunkFacts>& facts, double share) {
  std::int64_t all = 0;
  for (const ChunkFacts& chunk : facts) all += weight(chunk);
  const double most = share * static_cast<double>(all);
  int kept = 0;
  std::int64_t bytes = 0;
  for (const ChunkFacts& chunk : facts) {
    bytes += weight(chunk);
    if (static_cast<double>(bytes) > most) break;
    ++kept;
  }
  return kept;
}

class StaticPolicy final : public Policy {
 public:
  StaticPolicy(const std::vector<ChunkFacts>& facts, const PolicyRules& rules)
      : facts_(facts),
        rules_(rules),
        kept_(chunks_kept(facts, rules.keep_share)),
        draft_(facts_),
        prefetcher_(rules.prefetch) {}

  void before(const Need& need, const Moment& moment, const std::vector<ChunkStatus>& chunks,
              std::int64_t in_use_bytes, std::vector<Action>& actions) override {
    draft_.open(need, chunks, in_use_bytes);
    make_room(moment, chunks);
    if (rules_.prefetch > 0 && moment.trace != nullptr) prefetch(moment, chunks);
    draft_.write(actions);
  }

  void after(const std::vector<int>& ended, const Moment& moment, const std::vector<ChunkStatus>& chunks,
             std::vector<Action>& actions) override {
    draft_.open({}, chunks, 0);
    for (const int chunk : ended) {
      const bool kept = chunk < kept_ && !chunks[static_cast<std::size_t>(chunk)].transient;
      if (!kept && draft_.evictable(chunk)) release(chunk, moment);
    }
    draft_.write(actions);
  }

  [[nodiscard]] std::int64_t most(const Moment& moment) const override {
    return forecast_.most(moment, rules_.budget);
  }
  [[nodiscard]] bool fetches_ahead() const override { return rules_.prefetch > 0; }

  void learn(const Trace& trace) override {
    forecast_ = Forecast(trace, facts_, rules_.budget);
    prefetcher_.learn();
  }

 private:
  void release(int chunk, const Moment& moment) {
    draft_.release(chunk);
    prefetcher_.released(moment.trace == nullptr ? 0 : moment.trace->next_use(chunk, moment.position));
  }

  // Kept copies go first, then what is on its way; highest index first.
  void make_room(const Moment& moment, const std::vector<ChunkStatus>& chunks) {
    for (const ChunkStatus::Copy copy : {ChunkStatus::Copy::gathered, ChunkStatus::Copy::arriving})
      for (int chunk = static_cast<int>(chunks.size()) - 1; chunk >= 0; --chunk) {
        if (draft_.filled_bytes() <= most(moment)) return;
        if (chunks[static_cast<std::size_t>(chunk)].copy == copy && draft_.evictable(chunk))
          release(chunk, moment);
      }
  }

  void prefetch(const Moment& moment, const std::vector<ChunkStatus>& chunks) {
    const auto fits = [&](int chunk, int use) {
      const std::int64_t filled = draft_.filled_bytes() + facts_[static_cast<std::size_t>(chunk)].slot_bytes;
      return forecast_.excess(*moment.trace, moment.position, use, filled) <= 0;
    };
    prefetcher_.fetch(draft_, *moment.trace, moment.position, chunks, fits);
  }

  const std::vector<ChunkFacts>& facts_;  // the caller's; they change between iterations
  PolicyRules rules_;
  int kept_;
  Draft draft_;
  Forecast forecast_;
  Prefetcher prefetcher_;
};

}  // namespace

std::unique_ptr<Policy> make_static_policy(const std::vector<ChunkFacts>& facts, const PolicyRules& rules) {
  return std::make_unique<StaticPolicy>(facts, rules);
}

}  // namespace gemini
