#include "training/value_check.hpp"

#include <limits>

#include "base/fingerprint.hpp"
#include "kernels/kernels.hpp"
#include "training/pieces.hpp"

namespace gemini {
namespace {

constexpr const char* kWhat = "comparing values";

// A fingerprint of each of some things, over ranks. A rank may have none of a thing.
class Comparison {
 public:
  void add(std::optional<std::uint64_t> fingerprint) {
    constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
    const auto print = static_cast<std::int64_t>(fingerprint.value_or(0));
    words_.insert(words_.end(), {fingerprint ? print : kLowest, fingerprint ? ~print : kLowest});
  }
  // The first that differs; -1: none. Every rank calls with equally many.
  [[nodiscard]] int first_different(Ranks& ranks) {
    ranks.agreement().all_reduce(MPI_MAX, words_, kWhat);
    for (std::size_t i = 0; 2 * i < words_.size(); ++i)
      if (ranks.topology().ranks > 1 && words_[2 * i] != ~words_[2 * i + 1]) return static_cast<int>(i);
    return -1;
  }

 private:
  std::vector<std::int64_t> words_;
};

}  // namespace

void check_same_data(Ranks& ranks, const Registry& registry) {
  Comparison comparison;
  std::vector<const Parameter*> compared;
  for (const Parameter& p : registry.all()) {
    if (p.initialiser.kind != Initialiser::Kind::data || p.elems == 0) continue;
    compared.push_back(&p);
    comparison.add(p.initialiser.fingerprint);
  }
  const int different = comparison.first_different(ranks);
  if (different >= 0)
    fail(GEMINI_ERR_MISMATCH, "ranks gave different values to gemini_param_init_data of \"{}\"",
         compared[static_cast<std::size_t>(different)]->name);
}

void check_finite(Ranks& ranks, const Shards& shards) {
  std::vector<std::int64_t> bad(shards.registry.all().size());
  for_each_piece(
      shards, kValues, 0, [](const Chunk&) { return true; },
      [&](const OwnedPiece& piece) {
        if (!kernels::all_finite(piece.chunk().master_dtype(), piece.master(), piece.count_elems))
          bad[static_cast<std::size_t>(piece.parameter.index)] = 1;
      });
  ranks.agreement().all_reduce(MPI_MAX, bad, kWhat);
  for (const Parameter& p : shards.registry.all())
    if (bad[static_cast<std::size_t>(p.index)] != 0)
      fail(GEMINI_ERR_MISMATCH, "initial values of \"{}\" are not finite", p.name);
}

void check_same_copies(Ranks& ranks, Registry& registry, const ChunkStore& store,
                       const std::vector<int>& chunks) {
  Comparison comparison;
  for (const int chunk : chunks)
    comparison.add(fingerprint(store.gathered(store[chunk]), store[chunk].gathered_bytes()));
  const int different = comparison.first_different(ranks);
  if (different < 0) return;
  std::vector<std::string> names;
  for (const int tensor : store[chunks[static_cast<std::size_t>(different)]].spec.tensors)
    names.push_back(registry[tensor].name);
  fail(GEMINI_ERR_MISMATCH, "ranks hold different copies of {}", fmt::join(names, ", "));
}

}  // namespace gemini
