#include "training/initialise.hpp"

#include <algorithm>
#include <cmath>

#include "base/fingerprint.hpp"
#include "kernels/kernels.hpp"
#include "kernels/random.hpp"
#include "training/pieces.hpp"
#include "training/values.hpp"

namespace gemini {
namespace {

constexpr std::int64_t kPieceElems = std::int64_t{1} << 20;

struct Fans {
  double in = 1, out = 1;
};

Fans fans_of(const Parameter& p, bool swapped) {
  Fans fans;
  for (std::size_t d = 0; d < p.shape.size(); ++d)
    (d == 0 ? fans.out : fans.in) *= static_cast<double>(p.shape[d]);
  if (swapped) std::swap(fans.in, fans.out);
  return fans;
}

kernels::Distribution distribution_of(const Parameter& p) {
  using D = kernels::Distribution;
  const Initialiser& init = p.initialiser;
  const Fans fans = fans_of(p, init.b == 1.0);
  switch (init.rule) {
    case GEMINI_INIT_ZEROS: return {D::uniform, 0, 0};
    case GEMINI_INIT_CONSTANT: return {D::uniform, init.a, init.a};
    case GEMINI_INIT_UNIFORM: return {D::uniform, init.a, init.b};
    case GEMINI_INIT_NORMAL: return {D::normal, init.a, init.b};
    case GEMINI_INIT_XAVIER_UNIFORM: {
      const double bound = init.a * std::sqrt(6.0 / (fans.in + fans.out));
      return {D::uniform, -bound, bound};
    }
    case GEMINI_INIT_KAIMING_NORMAL: return {D::normal, 0, init.a / std::sqrt(fans.in)};
  }
  return {D::uniform, 0, 0};
}

void fill_piece(Tiers& tiers, Chunk& chunk, const ShardPiece& piece, const Parameter& p, std::int64_t first,
                std::int64_t count, std::vector<std::byte>& values) {
  const DType type = chunk.master_dtype();
  values.resize(static_cast<std::size_t>(count * size_of(type)));
  const kernels::Distribution distribution = distribution_of(p);
  if (distribution.kind == kernels::Distribution::uniform && distribution.a == distribution.b)
    kernels::fill(type, values.data(), count, distribution.a);
  else
    kernels::draw(type, distribution, fingerprint(p.name, p.initialiser.seed), piece.first_elem + first,
                  count, values.data());
  store_values(tiers, chunk, piece.offset_in_shard + first, count, type, values.data());
}

void call_function(Tiers& tiers, Chunk& chunk, const ShardPiece& piece, const Parameter& p,
                   std::int64_t first, std::int64_t count, std::vector<std::byte>& values) {
  values.resize(static_cast<std::size_t>(count * size_of(p.dtype)));
  const int code = p.initialiser.function(p.initialiser.user, piece.first_elem + first, count, values.data());
  if (code != 0)
    fail(GEMINI_ERR_CALLBACK, "the initialiser of \"{}\" returned {} at element {}", p.name, code,
         piece.first_elem + first);
  store_values(tiers, chunk, piece.offset_in_shard + first, count, p.dtype, values.data());
}

}  // namespace

void set_initialiser(Parameter& p, Initialiser init) {
  if (p.ignored)
    fail(GEMINI_ERR_ARGUMENT,
         "parameter \"{}\" is IGNORED: its values are the caller's own, gemini_param_attach them", p.name);
  if (init.kind == Initialiser::Kind::fill) {
    if (init.rule < GEMINI_INIT_ZEROS || init.rule > GEMINI_INIT_KAIMING_NORMAL)
      fail(GEMINI_ERR_ARGUMENT, "kind is {}: allowed are the GEMINI_INIT_* values 1 to 6",
           static_cast<int>(init.rule));
    if (!std::isfinite(init.a) || !std::isfinite(init.b))
      fail(GEMINI_ERR_ARGUMENT, "a = {} and b = {} must be finite", init.a, init.b);
    if (init.rule == GEMINI_INIT_UNIFORM && init.a > init.b)
      fail(GEMINI_ERR_ARGUMENT, "GEMINI_INIT_UNIFORM draws in [a, b): a = {} is above b = {}", init.a,
           init.b);
    if (init.rule == GEMINI_INIT_NORMAL && init.b < 0)
      fail(GEMINI_ERR_ARGUMENT, "GEMINI_INIT_NORMAL: the standard deviation b is {}, must be >= 0", init.b);
  }
  p.initialiser = std::move(init);
}

void initialise_own_ranges(Registry& registry, ChunkStore& store) {
  std::vector<std::byte> values;
  for (Chunk& chunk : store.chunks()) {
    for (const ShardPiece& piece : chunk.pieces) {
      const Parameter& p = registry[piece.tensor];
      const Initialiser::Kind kind = p.initialiser.kind;
      for (std::int64_t first = 0; first < piece.count_elems; first += kPieceElems) {
        const std::int64_t count = std::min(kPieceElems, piece.count_elems - first);
        if (kind == Initialiser::Kind::fill) fill_piece(store.tiers(), chunk, piece, p, first, count, values);
        if (kind == Initialiser::Kind::function)
          call_function(store.tiers(), chunk, piece, p, first, count, values);
      }
    }
  }
}

void initialise_from_data(Ranks& ranks, Registry& registry, ChunkStore& store) {
  for (Parameter& p : registry.all()) {
    if (p.initialiser.kind == Initialiser::Kind::data && p.chunk >= 0)
      write_values(ranks, store.tiers(), store[p.chunk], p, p.dtype, p.initialiser.data.data(), 0);
  }
}

}  // namespace gemini
