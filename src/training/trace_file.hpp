// Learnt traces in files: options trace_in and trace_out.
#pragma once

#include <string>

#include "chunks/layout.hpp"
#include "collectives/ranks.hpp"
#include "placement/trace_text.hpp"
#include "training/registry.hpp"

namespace gemini {

TraceOrigin origin_of(const Registry& registry, const Layout& layout, int shard_ranks);

// Rank 0 reads and gives it to all; every rank calls, and throws the same: GEMINI_ERR_NOT_FOUND, _IO or
// _MISMATCH.
Trace read_trace(Ranks& ranks, const std::string& path, const TraceOrigin& here);

// On one rank. GEMINI_ERR_UNSUPPORTED: an order that is no trace.
void write_trace(const std::string& path, const Trace& trace, const TraceOrigin& origin);

}  // namespace gemini
