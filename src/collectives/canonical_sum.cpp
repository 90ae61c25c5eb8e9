#include "collectives/canonical_sum.hpp"

#include <algorithm>

#include "kernels/kernels.hpp"

namespace gemini {

namespace {

// Small pieces, so that sums stay in cache.
constexpr std::int64_t kPiece = 32768;

}  // namespace

void CanonicalSum::select(const std::vector<int>& ranks, const Contributions& contribution,
                          std::int64_t bytes) {
  of_node_.clear();
  for (const int rank : ranks) {
    const std::byte* values = contribution[static_cast<std::size_t>(rank)];
    of_node_.push_back(values == nullptr ? nullptr : values + bytes);
  }
}

void CanonicalSum::add_node(const std::vector<int>& ranks, DType type, std::int64_t first, std::int64_t count,
                            const Contributions& contribution, std::byte* sum) {
  select(ranks, contribution, first * size_of(type));
  kernels::sum_contributions(type, of_node_.data(), static_cast<int>(of_node_.size()), sum, count);
}

void CanonicalSum::add_up(DType type, std::int64_t first, std::int64_t count,
                          const Contributions& contribution, std::byte* sum) {
  const std::int64_t wide_size = size_of(wide(type));
  node_sum_.resize(static_cast<std::size_t>(kPiece * wide_size));
  for (std::int64_t done = 0; done < count; done += kPiece) {
    const std::int64_t n = std::min(kPiece, count - done);
    std::byte* total = sum + done * wide_size;
    add_node(nodes_.front(), type, first + done, n, contribution, total);
    for (std::size_t node = 1; node < nodes_.size(); ++node) {
      add_node(nodes_[node], type, first + done, n, contribution, node_sum_.data());
      kernels::add(wide(type), node_sum_.data(), total, n);
    }
  }
}

void CanonicalSum::add_up(DType type, std::int64_t count, const Contributions& contribution, std::byte* sum) {
  add_up(type, 0, count, contribution, sum);
}

void CanonicalSum::store(const GradientReduction& reduction, std::int64_t first, std::int64_t count,
                         const Contributions& contribution) {
  const DType type = wide(reduction.dtype);
  std::byte* sum = reduction.sum + first * size_of(type);
  if (nodes_.size() == 1) {
    select(nodes_.front(), contribution, 0);
    return kernels::add_contributions(reduction.dtype, of_node_.data(), static_cast<int>(of_node_.size()),
                                      reduction.divisor, reduction.first, sum, count);
  }
  total_.resize(static_cast<std::size_t>(kPiece * size_of(type)));
  for (std::int64_t done = 0; done < count; done += kPiece) {
    const std::int64_t n = std::min(kPiece, count - done);
    add_up(reduction.dtype, done, n, contribution, total_.data());
    const void* total = total_.data();
    kernels::add_contributions(type, &total, 1, reduction.divisor, reduction.first,
                               sum + done * size_of(type), n);
  }
}

}  // namespace gemini
