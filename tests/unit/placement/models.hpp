// Traces of one iteration of networks, operation by operation.
#pragma once

#include <vector>

#include "gemini.h"
#include "placement/policy.hpp"

namespace gemini::models {

struct Operation {
  gemini_phase_t phase;
  std::vector<int> chunks;
};

struct Model {
  const char* name;
  int chunks;
  bool rereads;  // weights that are read again in one direction, not only on the way back
  std::vector<Operation> operations;
};

// A gradient opens at the first BACKWARD of its chunk and closes at the end of the last.
Trace trace_of(const Model& model, std::int64_t compute_ns = 0);

// Embedding tied with the output; two chunks for each layer.
Model transformer(int layers);
// What each level of the way down computes is read on the way up, through weights that both use.
Model u_net(int levels);
// Layers that share few weights in turn.
Model tied_mlp(int layers, int weights);
// Forward again, a few layers at a time, before their backward.
Model recomputed(int layers, int segment);

inline std::vector<Model> all() {
  return {transformer(12), u_net(10), tied_mlp(24, 9), recomputed(24, 4)};
}

}  // namespace gemini::models
