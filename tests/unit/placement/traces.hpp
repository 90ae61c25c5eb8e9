// Short ways to write traces and chunks in tests of placement.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "gemini.h"
#include "placement/policy.hpp"

namespace gemini::traces {

inline TraceEvent begin(std::vector<int> chunks, std::vector<int> opens = {}, std::int64_t compute_ns = 0) {
  TraceEvent event;
  event.phase = opens.empty() ? GEMINI_FORWARD : GEMINI_BACKWARD;
  event.chunks = std::move(chunks);
  event.opens = std::move(opens);
  event.compute_ns = compute_ns;
  return event;
}

inline TraceEvent end(std::vector<int> chunks, std::vector<int> closes = {}) {
  TraceEvent event;
  event.kind = TraceEvent::Kind::end;
  event.phase = closes.empty() ? GEMINI_FORWARD : GEMINI_BACKWARD;
  event.chunks = std::move(chunks);
  event.closes = std::move(closes);
  return event;
}

// Operations one after the other, each with its chunks.
inline Trace forward(const std::vector<std::vector<int>>& operations, int chunks,
                     std::int64_t compute_ns = 0) {
  std::vector<TraceEvent> events;
  for (const std::vector<int>& operation : operations) {
    events.push_back(begin(operation, {}, compute_ns));
    events.push_back(end(operation));
  }
  return Trace(std::move(events), chunks);
}

// Equal chunks; frozen ones have no gradient.
inline std::vector<ChunkFacts> equal_chunks(int count, std::int64_t bytes, bool frozen = false) {
  ChunkFacts facts;
  facts.slot_bytes = facts.wire_bytes = bytes;
  facts.gradient_bytes = frozen ? 0 : bytes;
  return std::vector<ChunkFacts>(static_cast<std::size_t>(count), facts);
}

}  // namespace gemini::traces
