// A network of equal operations on a slow link, each on a chunk of its own. Its compute waits and needs no
// CPU, as that of a device does.
#pragma once

#include <chrono>

#include "context.hpp"

namespace gemini_bench {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int kOperations = 32;

struct Link {
  double latency_us;
  double gbit_per_s;
  // Of an operation's chunk: this rank's half of it goes to the one other rank, in a gather as in a
  // reduction.
  [[nodiscard]] Seconds time() const;
  [[nodiscard]] std::string option() const;
};

// What the operations of one pass compute, without communication.
void compute(Clock::duration each);

class Network {
 public:
  Network(Settings settings, const Link& link);

  struct Times {
    double forward_s;    // the FORWARD operations
    double iteration_s;  // and BACKWARD with its reductions, and the step
  };
  // One iteration, begun by all ranks together; the slowest rank's times.
  Times iterate();

 private:
  void operate(gemini_param_t param, bool writes_gradient);

  Context ctx_;
  Params params_;
  Clock::duration compute_;
};

// Ranks leave together.
void meet();
// The largest over ranks, of the time since start.
double slowest_s(Clock::time_point start, Clock::time_point end);

}  // namespace gemini_bench
