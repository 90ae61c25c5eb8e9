#include "placement/policy.hpp"

namespace gemini {

std::vector<Action> StaticPolicy::before_operation(const std::vector<ChunkView>& needed) {
  std::vector<Action> actions;
  for (const ChunkView& chunk : needed)
    if (!chunk.gathered) actions.push_back({Action::Kind::gather, chunk.chunk});
  return actions;
}

std::vector<Action> StaticPolicy::after_operation(const std::vector<ChunkView>& used) {
  std::vector<Action> actions;
  for (const ChunkView& chunk : used)
    if (chunk.gathered && !chunk.leased && !chunk.resident)
      actions.push_back({Action::Kind::release, chunk.chunk});
  return actions;
}

}  // namespace gemini
