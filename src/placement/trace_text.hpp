// A learnt trace as text (JSON) and back, for a later run of the same model on as many ranks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "placement/trace.hpp"

namespace gemini {

// What a trace was learnt with: it is of use to nothing else.
struct TraceOrigin {
  std::uint64_t parameters = 0;  // digests
  std::uint64_t layout = 0;
  int chunks = 0;
  int shard_ranks = 1;
};

// The events must be well formed.
std::string text_of(const Trace& trace, const TraceOrigin& origin);
// Throws GEMINI_ERR_IO for a text that is damaged or no trace, GEMINI_ERR_MISMATCH for a trace from
// elsewhere.
Trace parse_trace(std::string_view text, const TraceOrigin& here);

}  // namespace gemini
