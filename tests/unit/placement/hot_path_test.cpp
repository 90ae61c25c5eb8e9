// Where all that is needed is here, a decision allocates nothing.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "unit/placement/traces.hpp"

namespace {
std::int64_t allocations = 0;
}

void* operator new(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace gemini {
namespace {

// Decisions about the events after the first up to `events`, with every copy here and used again; the number
// of allocations.
std::int64_t allocations_of(Policy& policy, const Trace& trace, int events,
                            const std::vector<ChunkStatus>& chunks) {
  std::vector<Action> actions;
  std::int64_t before = 0;
  for (int e = 0; e < events; ++e) {
    const TraceEvent& event = trace.events()[static_cast<std::size_t>(e)];
    if (event.kind == TraceEvent::Kind::begin)
      policy.before({&event.chunks, 0}, {&trace, e}, chunks, 40, actions);
    else
      policy.after(event.chunks, {&trace, e}, chunks, actions);
    if (e == 0) before = allocations;
  }
  EXPECT_TRUE(actions.empty());
  return allocations - before;
}

TEST(HotPath, ADecisionWithNothingToDoAllocatesNothing) {
  const auto facts = traces::equal_chunks(4, 10, true);
  const Trace trace = traces::forward({{0, 1}, {2}, {3}, {1}, {0, 3}, {0, 1, 2, 3}}, 4);
  std::vector<ChunkStatus> chunks(4);
  for (ChunkStatus& chunk : chunks) chunk.copy = ChunkStatus::Copy::gathered;
  PolicyRules rules;
  rules.budget.limit_bytes = 100;
  rules.prefetch = 2;
  rules.keep_share = 1;
  const Rates rates;
  std::vector<std::unique_ptr<Policy>> policies;
  policies.push_back(make_static_policy(facts, rules));
  policies.push_back(make_auto_policy(facts, rules));
  policies.push_back(make_planned_policy(facts, rules, &rates));
  for (const auto& policy : policies) {
    policy->learn(trace);
    EXPECT_EQ(allocations_of(*policy, trace, trace.size() - 2, chunks), 0);
  }
}

}  // namespace
}  // namespace gemini
