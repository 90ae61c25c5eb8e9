// The one order in which contributions to a gradient are added, whatever carried them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/topology.hpp"
#include "collectives/transport.hpp"

namespace gemini {

class CanonicalSum {
 public:
  // nodes: the contributing ranks by node, see Topology.
  explicit CanonicalSum(std::vector<std::vector<int>> nodes) : nodes_(std::move(nodes)) {}

  // Adds the contributions of all ranks to elements [first, first + count) of the shard and stores them in
  // reduction.sum. contribution[r]: rank r's values of that range.
  void store(const GradientReduction& reduction, std::int64_t first, std::int64_t count,
             const std::vector<const std::byte*>& contribution);

 private:
  void add_node(const std::vector<int>& ranks, const GradientReduction& reduction, std::int64_t count,
                const std::vector<const std::byte*>& contribution, std::vector<std::byte>& sum);

  std::vector<std::vector<int>> nodes_;
  std::vector<std::byte> total_, node_sum_;
};

}  // namespace gemini
