// Which copies of an iteration are kept between two uses: Belady's rule over the whole trace.
#pragma once

#include <cstdint>
#include <vector>

#include "placement/forecast.hpp"
#include "placement/policy.hpp"

namespace gemini {

// What an iteration begins with.
struct Start {
  std::int64_t resting_bytes = 0;  // of compute memory under data that stays there
  std::vector<bool> present;       // by chunk: a copy is there
  friend bool operator==(const Start& a, const Start& b) {
    return a.resting_bytes == b.resting_bytes && a.present == b.present;
  }
};

struct Retention {
  struct Miss {
    int chunk;
    int absent_since;  // event; -1: the beginning
    int use;
  };
  std::vector<Miss> misses;                // uses that need a gather, in order
  std::vector<std::vector<int>> releases;  // by event: copies that go when their last lease ends there
  std::vector<int> unwanted;               // that are there at the beginning
  std::vector<std::int64_t> kept_bytes;    // by event: of idle copies once it has happened
};

// reserved_bytes: of what the soft limit leaves to idle copies, not to be used.
Retention retain(const Trace& trace, const Forecast& forecast, const std::vector<ChunkFacts>& facts,
                 const Start& start, std::int64_t reserved_bytes);

}  // namespace gemini
