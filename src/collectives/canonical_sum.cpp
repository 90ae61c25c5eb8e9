#include "collectives/canonical_sum.hpp"

#include <algorithm>

#include "kernels/kernels.hpp"

namespace gemini {

namespace {

// Small pieces, so that sums stay in cache.
constexpr std::int64_t kPiece = 32768;

CanonicalSum::Contributions advanced(const CanonicalSum::Contributions& contribution, std::int64_t bytes) {
  CanonicalSum::Contributions there = contribution;
  for (const std::byte*& values : there)
    if (values != nullptr) values += bytes;
  return there;
}

alignas(64) constexpr std::byte kZeros[kPiece * sizeof(double)] = {};

}  // namespace

void CanonicalSum::add_node(const std::vector<int>& ranks, DType type, std::int64_t count,
                            const Contributions& contribution, std::byte* sum) {
  bool empty = true;
  for (const int rank : ranks) {
    const std::byte* values = contribution[static_cast<std::size_t>(rank)];
    if (values == nullptr) values = kZeros;
    if (empty)
      kernels::convert(type, values, wide(type), sum, count);
    else
      kernels::add(type, values, sum, count);
    empty = false;
  }
}

void CanonicalSum::add_up(DType type, std::int64_t count, const Contributions& contribution, std::byte* sum) {
  const std::int64_t wide_size = size_of(wide(type));
  node_sum_.resize(static_cast<std::size_t>(kPiece * wide_size));
  for (std::int64_t done = 0; done < count; done += kPiece) {
    const std::int64_t n = std::min(kPiece, count - done);
    const Contributions piece = advanced(contribution, done * size_of(type));
    std::byte* total = sum + done * wide_size;
    add_node(nodes_.front(), type, n, piece, total);
    for (std::size_t node = 1; node < nodes_.size(); ++node) {
      add_node(nodes_[node], type, n, piece, node_sum_.data());
      kernels::add(wide(type), node_sum_.data(), total, n);
    }
  }
}

void CanonicalSum::store(const GradientReduction& reduction, std::int64_t first, std::int64_t count,
                         const Contributions& contribution) {
  const DType type = wide(reduction.dtype);
  total_.resize(static_cast<std::size_t>(kPiece * size_of(type)));
  for (std::int64_t done = 0; done < count; done += kPiece) {
    const std::int64_t n = std::min(kPiece, count - done);
    add_up(reduction.dtype, n, advanced(contribution, done * size_of(reduction.dtype)), total_.data());
    std::byte* sum = reduction.sum + (first + done) * size_of(type);
    if (reduction.first) kernels::fill(type, sum, n, 0.0);
    kernels::add_quotient(type, total_.data(), reduction.divisor, sum, n);
  }
}

}  // namespace gemini
