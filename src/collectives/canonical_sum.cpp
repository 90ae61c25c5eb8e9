#include "collectives/canonical_sum.hpp"

#include <algorithm>

#include "kernels/kernels.hpp"

namespace gemini {

void CanonicalSum::add_node(const std::vector<int>& ranks, const GradientReduction& reduction,
                            std::int64_t count, const std::vector<const std::byte*>& contribution,
                            std::vector<std::byte>& sum) {
  sum.resize(static_cast<std::size_t>(count * size_of(wide(reduction.dtype))));
  bool empty = true;
  for (const int rank : ranks) {
    const std::byte* values = contribution[static_cast<std::size_t>(rank)];
    if (empty)
      kernels::convert(reduction.dtype, values, wide(reduction.dtype), sum.data(), count);
    else
      kernels::add(reduction.dtype, values, sum.data(), count);
    empty = false;
  }
}

void CanonicalSum::store(const GradientReduction& reduction, std::int64_t first, std::int64_t count,
                         const std::vector<const std::byte*>& contribution) {
  const DType type = wide(reduction.dtype);
  // Small pieces, so that sums stay in cache.
  constexpr std::int64_t kPiece = 32768;
  std::vector<const std::byte*> piece = contribution;
  for (std::int64_t done = 0; done < count; done += kPiece) {
    const std::int64_t n = std::min(kPiece, count - done);
    for (std::size_t r = 0; r < piece.size(); ++r)
      piece[r] = contribution[r] + done * size_of(reduction.dtype);
    add_node(nodes_.front(), reduction, n, piece, total_);
    for (std::size_t node = 1; node < nodes_.size(); ++node) {
      add_node(nodes_[node], reduction, n, piece, node_sum_);
      kernels::add(type, node_sum_.data(), total_.data(), n);
    }
    std::byte* sum = reduction.sum + (first + done) * size_of(type);
    if (reduction.first) kernels::fill(type, sum, n, 0.0);
    kernels::add_quotient(type, total_.data(), reduction.divisor, sum, n);
  }
}

}  // namespace gemini
