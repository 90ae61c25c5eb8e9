// The one exchange of a step: what every rank must know to decide the same.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/agreement.hpp"

namespace gemini {

// Sections of 64-bit words, each combined over ranks in its own way, in one round.
struct StepExchange {
  std::vector<std::int64_t> maxima;
  std::vector<std::int64_t> sums;
  std::vector<std::int64_t> unions;  // bit sets

  // In place. Every rank calls with sections of the same lengths.
  void run(CommQueue& queue, MPI_Comm comm, int ranks);
};

}  // namespace gemini
