// The fewest bytes that an iteration can gather, whatever the policy, with chunks of any sizes and from no
// copies.
//
// As tests/unit/placement/bound.hpp has it for equal chunks: a use needs no gather only if its copy was kept
// since the chunk's last lease, and what is kept must fit, at each event, beside leased copies and open
// gradients. So the bound is a choice of such idle intervals that keeps the most bytes.
//
// It is found by trying intervals in the order of their right ends, kept or not, and leaving off where even
// keeping the rest in parts, byte by byte, would not beat the best choice so far. In parts, taking each as
// far as it still fits keeps the most. What is too long to try out has the bound in parts, which is lower.
#pragma once

#include <cstdint>
#include <vector>

#include "placement/policy.hpp"

namespace gemini_bench {

struct Fewest {
  std::int64_t bytes;
  bool exact;  // false: it may be more
};

Fewest fewest_bytes(const gemini::Trace& trace, const std::vector<gemini::ChunkFacts>& facts,
                    const gemini::Budget& budget, std::int64_t resting_bytes);

}  // namespace gemini_bench
