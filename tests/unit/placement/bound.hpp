// The fewest gathers with which an iteration can be run at all, with equal chunks and from no copies.
//
// A use needs no gather exactly if its copy has been kept since the chunk's last lease ended. So an iteration
// is a choice of such idle intervals, and its gathers are the uses less the intervals chosen. A choice can be
// run if at each event the chosen intervals that span it fit beside what is there whatever one chooses:
// copies under lease (all of an operation's together, however many it needs) and open gradient buffers. Where
// these alone exceed what may be filled, no interval may span the event. Nothing else restricts a choice, so
// the largest one gives a bound that no policy beats, prefetching or not.
//
// Intervals of one size on a line with a capacity for each event: taking them by their right ends, each that
// still fits, is largest. Let a largest choice agree with this one on all intervals before I. If I does not
// fit, neither has it. If it fits and the other lacks it, put it there: each event that is now too full lies
// in I and, since I fits with all before it, in an interval after I, too. The one of these that spans the
// leftmost such event ends no earlier than I, so it spans them all: take it out, and the choice is as large
// as before and agrees on I. A test compares with trying everything.
#pragma once

#include <cstdint>
#include <vector>

#include "placement/policy.hpp"

namespace gemini::bound {

// Copies that may be kept idle once each event has happened.
std::vector<std::int64_t> idle_capacities(const Trace& trace, const ChunkFacts& each, int chunks,
                                          const Budget& budget);
std::int64_t fewest_gathers(const Trace& trace, int chunks, const std::vector<std::int64_t>& capacities);
// The same, by trying all sets of copies after each event. For few chunks.
std::int64_t fewest_gathers_tried(const Trace& trace, int chunks,
                                  const std::vector<std::int64_t>& capacities);

}  // namespace gemini::bound
