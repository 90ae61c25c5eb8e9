// A whole iteration decided beforehand: which copies are kept, and when each gather starts.
#pragma once

#include <vector>

#include "placement/retention.hpp"

namespace gemini {

struct Schedule {
  struct Gather {
    int chunk;
    int issue;  // a begin; the use itself: on demand
    int use;
  };
  std::vector<Gather> gathers;             // in order of use and of issue
  std::vector<std::vector<int>> releases;  // by event: copies that go when their last lease ends there
  std::vector<int> unwanted;               // that are there at the beginning
};

// Gathers start as early as the link needs to be in time, and not before there is room for the copy until its
// use. depth: gathers on their way at most; < 0: as many as have room.
Schedule make_schedule(const Trace& trace, const Forecast& forecast, const std::vector<ChunkFacts>& facts,
                       const Rates& rates, const Start& start, std::int64_t reserved_bytes, int depth);

}  // namespace gemini
