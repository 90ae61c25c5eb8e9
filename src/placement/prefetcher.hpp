// Which chunks to fetch ahead: the next ones in the order of the trace, a few at a time.
#pragma once

#include <algorithm>
#include <vector>

#include "placement/draft.hpp"

namespace gemini {

class Prefetcher {
 public:
  // depth: on their way at most.
  explicit Prefetcher(int depth) : depth_(depth) {}

  void learn() { ahead_ = 0; }
  // The copy is gone; next_use in the trace.
  void released(int next_use) { ahead_ = std::min(ahead_, next_use); }

  bool may_start(const Draft& draft, const std::vector<ChunkStatus>& chunks);
  void start(Draft& draft, int chunk);

  // While one may start: offers make_room(chunk, use) the next use of an absent chunk, and starts it if that
  // agrees.
  template <class MakeRoom>
  void fetch(Draft& draft, const Trace& trace, int position, const std::vector<ChunkStatus>& chunks,
             const MakeRoom& make_room);

 private:
  int depth_;
  // All uses from the present position until here are of copies that are here or arriving: what has been
  // looked through once is not looked through again.
  int ahead_ = 0;
  int position_ = 0;
  std::vector<int> on_their_way_;
};

template <class MakeRoom>
void Prefetcher::fetch(Draft& draft, const Trace& trace, int position, const std::vector<ChunkStatus>& chunks,
                       const MakeRoom& make_room) {
  if (position <= position_) ahead_ = 0;  // another iteration: a step made copies outdated
  position_ = position;
  ahead_ = std::max(ahead_, position + 1);
  for (; ahead_ < trace.size(); ++ahead_) {
    const TraceEvent& event = trace.events()[static_cast<std::size_t>(ahead_)];
    if (event.kind != TraceEvent::Kind::begin) continue;
    for (const int chunk : event.chunks) {
      if (draft.present(chunk)) continue;
      // A copy that has just gone to make room does not come back at once.
      if (draft.released(chunk) || !may_start(draft, chunks) || !make_room(chunk, ahead_)) return;
      start(draft, chunk);
    }
  }
}

}  // namespace gemini
