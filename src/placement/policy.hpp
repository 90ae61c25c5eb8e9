// Placement decides and does nothing: lists of actions from what all ranks know to be equal.
#pragma once

#include <vector>

namespace gemini {

struct Action {
  enum class Kind { gather, release } kind;
  int chunk;
};

// What a decision may look at.
struct ChunkView {
  int chunk;
  bool gathered;
  bool leased;
  bool resident;
};

// Gather on use, release after: `placement = static` with nothing kept.
class StaticPolicy {
 public:
  // needed: the chunks of an operation that is about to run.
  static std::vector<Action> before_operation(const std::vector<ChunkView>& needed);
  // used: the chunks of an operation that has run.
  static std::vector<Action> after_operation(const std::vector<ChunkView>& used);
};

}  // namespace gemini
