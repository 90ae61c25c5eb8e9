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
  using Contributions = std::vector<const std::byte*>;  // by rank; NULL: zeros

  // nodes: the contributing ranks by node, see Topology.
  explicit CanonicalSum(std::vector<std::vector<int>> nodes) : nodes_(std::move(nodes)) {}

  // sum[i] = contributions of all ranks to element i; sum is of wide(type). contribution[r]: rank r's values,
  // NULL for zeros.
  void add_up(DType type, std::int64_t count, const Contributions& contribution, std::byte* sum);

  // The same for elements [first, first + count) of the shard, stored in reduction.sum. contribution[r]:
  // rank r's values of that range.
  void store(const GradientReduction& reduction, std::int64_t first, std::int64_t count,
             const Contributions& contribution);

 private:
  void add_up(DType type, std::int64_t first, std::int64_t count, const Contributions& contribution,
              std::byte* sum);
  void add_node(const std::vector<int>& ranks, DType type, std::int64_t first, std::int64_t count,
                const Contributions& contribution, std::byte* sum);
  // of_node_ = the contributions of these ranks, from `bytes` on
  void select(const std::vector<int>& ranks, const Contributions& contribution, std::int64_t bytes);

  std::vector<std::vector<int>> nodes_;
  std::vector<std::byte> total_, node_sum_;
  std::vector<const void*> of_node_;
};

}  // namespace gemini
