// What happens to a chunk, as events of a timeline.
#pragma once

#include "base/timeline.hpp"
#include "chunks/chunk_store.hpp"

namespace gemini {

inline TimelineEvent chunk_event(TimelineEvent::Track track, const Chunk& chunk, const char* what,
                                 std::int64_t bytes) {
  TimelineEvent event{track};
  event.chunk = chunk.index;
  event.what = what;
  event.bytes = bytes;
  return event;
}

inline TimelineEvent chunk_move(const Chunk& chunk, const char* what, std::int64_t bytes, Place from,
                                Place to) {
  TimelineEvent event = chunk_event(TimelineEvent::Track::moves, chunk, what, bytes);
  event.from = name_of(from);
  event.to = name_of(to);
  return event;
}

}  // namespace gemini
