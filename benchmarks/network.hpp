// A network of equal operations on a slow link, each on a chunk of its own. Its compute waits and needs no
// CPU, as that of a device does.
#pragma once

#include <chrono>

#include "context.hpp"

namespace gemini_bench {

constexpr int kOperations = 32;

struct Link {
  double latency_us;
  double gbit_per_s;
  // Of an operation's chunk: this rank's half of it goes to the one other rank, in a gather as in a
  // reduction.
  [[nodiscard]] Seconds time() const;
  [[nodiscard]] std::string option() const;
};

// Of one operation of each pass.
struct Compute {
  Clock::duration forward, backward;
};

// One pass, or more.
struct Part {
  double time_s = 0;                // of the slowest rank
  std::int64_t communications = 0;  // gathers and reductions
};
struct Iteration {
  Part forward;  // the FORWARD operations
  Part whole;    // and BACKWARD with its reductions, and the step
};

class Network {
 public:
  Network(Settings settings, const Link& link, const Compute& compute);
  // One iteration, begun by all ranks together.
  Iteration iterate();

 private:
  void operate(gemini_param_t param, bool backward);
  [[nodiscard]] std::int64_t communications() const;

  Context ctx_;
  Params params_;
  Compute compute_;
};

// What its operations compute, without the library.
Iteration compute_alone(const Compute& compute);

}  // namespace gemini_bench
