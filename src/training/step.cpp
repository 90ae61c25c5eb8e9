#include "training/step.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "collectives/step_exchange.hpp"
#include "kernels/kernels.hpp"
#include "training/pieces.hpp"

namespace gemini {
namespace {

// Numbers that are not negative keep their order as integers.
std::int64_t ordered_bits(double value) {
  std::int64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
double from_ordered_bits(std::int64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

struct LocalGradients {
  ExactSum squares;
  double maximum = 0;
  bool finite = true;
};

void look_at(const OwnedPiece& piece, bool infinity_norm, LocalGradients& seen) {
  const DType type = wide(piece.chunk().spec.dtype);
  const std::byte* sum = piece.at(Item::grad_sum);
  ExactSum squares;
  kernels::add_squares(type, sum, piece.count_elems, squares);
  // A square may overflow where the value does not.
  if (!squares.finite()) seen.finite = seen.finite && kernels::all_finite(type, sum, piece.count_elems);
  seen.squares.add(squares);
  if (infinity_norm) seen.maximum = std::max(seen.maximum, kernels::max_abs(type, sum, piece.count_elems));
}

// The 2-norm where squares overflow (F64 alone can): of the gradients times a power of two. All ranks call.
double scaled_norm(Ranks& ranks, const Shards& shards) {
  constexpr double kDown = 0x1p-540;
  std::vector<ExactSum> sums(1);
  for_each_gradient(shards, set_of(Item::grad_sum), 0, [&](const OwnedPiece& piece) {
    const DType type = wide(piece.chunk().spec.dtype);
    const std::byte* sum = piece.at(Item::grad_sum);
    std::vector<std::byte> scaled(sum, sum + piece.count_elems * size_of(type));
    kernels::scale(type, scaled.data(), piece.count_elems, kDown);
    kernels::add_squares(type, scaled.data(), piece.count_elems, sums[0]);
  });
  add_over_shards(ranks, sums, "the norm of large gradients");
  return std::sqrt(sums[0].value()) / kDown;
}

std::vector<std::int64_t> produced_bits(const Registry& registry) {
  std::vector<std::int64_t> bits(registry.all().size() / 64 + 1);
  for (const Parameter& p : registry.all())
    if (p.grad_produced)
      bits[static_cast<std::size_t>(p.index) / 64] |=
          static_cast<std::int64_t>(std::uint64_t{1} << (p.index % 64));
  return bits;
}

}  // namespace

StepVerdict exchange_step(Ranks& ranks, const Shards& shards, bool infinity_norm, double scale,
                          Words& peaks) {
  LocalGradients mine;
  for_each_gradient(shards, set_of(Item::grad_sum), 0,
                    [&](const OwnedPiece& piece) { look_at(piece, infinity_norm, mine); });
  if (!ranks.first_replica()) mine.squares = ExactSum{};
  mine.squares.normalise();

  StepExchange exchange;
  exchange.maxima = {mine.finite ? 0 : 1, ordered_bits(mine.maximum)};
  exchange.maxima.insert(exchange.maxima.end(), peaks.begin(), peaks.end());
  exchange.sums.assign(mine.squares.limbs().begin(), mine.squares.limbs().end());
  exchange.unions = produced_bits(shards.registry);
  exchange.run(ranks.queue(), ranks.agreement().comm(), ranks.topology().ranks);

  StepVerdict verdict;
  verdict.finite = exchange.maxima[0] == 0;
  ExactSum squares;
  std::copy(exchange.sums.begin(), exchange.sums.end(), squares.limbs().begin());
  double norm = infinity_norm ? from_ordered_bits(exchange.maxima[1]) : std::sqrt(squares.value());
  if (!infinity_norm && verdict.finite && !squares.finite()) norm = scaled_norm(ranks, shards);
  verdict.grad_norm = norm / scale;
  std::copy(exchange.maxima.begin() + 2, exchange.maxima.end(), peaks.begin());
  verdict.produced.resize(shards.registry.all().size());
  for (std::size_t i = 0; i < verdict.produced.size(); ++i)
    verdict.produced[i] = (static_cast<std::uint64_t>(exchange.unions[i / 64]) >> (i % 64) & 1) != 0;
  return verdict;
}

void add_over_shards(Ranks& ranks, std::vector<ExactSum>& sums, const char* what) {
  constexpr std::size_t kBlock = 512;
  if (!ranks.first_replica()) std::fill(sums.begin(), sums.end(), ExactSum{});
  for (std::size_t first = 0; first < sums.size(); first += kBlock) {
    const std::size_t last = std::min(sums.size(), first + kBlock);
    std::vector<std::int64_t> words;
    for (std::size_t i = first; i < last; ++i) {
      sums[i].normalise();
      words.insert(words.end(), sums[i].limbs().begin(), sums[i].limbs().end());
    }
    ranks.agreement().all_reduce(MPI_SUM, words, what);
    for (std::size_t i = first; i < last; ++i)
      std::copy_n(words.begin() + static_cast<std::ptrdiff_t>((i - first) * ExactSum::kLimbs),
                  ExactSum::kLimbs, sums[i].limbs().begin());
  }
}

double clip_factor(double norm, double max_norm) {
  return max_norm == 0 ? 1.0 : std::min(1.0, max_norm / (norm + 1e-6));
}

}  // namespace gemini
