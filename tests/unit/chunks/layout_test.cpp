// Properties of every layout, over random models.
#include "chunks/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

namespace gemini {
namespace {

using Model = std::vector<TensorSpec>;
using Group = std::tuple<DType, DType, bool, bool>;

template <class Spec>
Group group_of(const Spec& spec) {
  return {spec.dtype, spec.grad_dtype, spec.frozen, spec.resident};
}

std::int64_t align_of(const TensorSpec& tensor, const LayoutRules& rules) {
  return rules.align_bytes / size_of(tensor.dtype);
}
std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

Model random_model(std::mt19937_64& random, std::int64_t largest) {
  constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
  Model model(random() % 40);
  for (TensorSpec& tensor : model) {
    tensor.elems = random() % 6 == 0 ? 0 : static_cast<std::int64_t>(random()) & (largest - 1);
    tensor.dtype = tensor.grad_dtype = kTypes[random() % 4];
    if (is_16bit(tensor.dtype) && random() % 3 == 0) tensor.grad_dtype = DType::f32;
    tensor.frozen = random() % 5 == 0;
    tensor.resident = random() % 5 == 0;
  }
  return model;
}

LayoutRules random_rules(std::mt19937_64& random) {
  LayoutRules rules;
  rules.ranks = static_cast<int>(random() % 7) + 1;
  rules.search_min_elems = static_cast<std::int64_t>(random() % 1000) + 1;
  rules.search_max_elems = rules.search_min_elems + static_cast<std::int64_t>(random() % 10000);
  if (random() % 2 == 0) rules.chunk_elems = static_cast<std::int64_t>(random() % 3000) + 1;
  return rules;
}

void check_chunks(const Model& model, const LayoutRules& rules, const Layout& layout) {
  for (const ChunkSpec& chunk : layout.chunks) {
    ASSERT_FALSE(chunk.tensors.empty());
    ASSERT_EQ(chunk.elems, chunk.shard_elems * rules.ranks);
    ASSERT_EQ(chunk.shard_elems * size_of(chunk.dtype) % rules.align_bytes, 0);
    ASSERT_TRUE(std::is_sorted(chunk.tensors.begin(), chunk.tensors.end()));
    for (const int tensor : chunk.tensors)
      ASSERT_EQ(group_of(model[static_cast<std::size_t>(tensor)]), group_of(chunk));
  }
}

void check_places(const Model& model, const LayoutRules& rules, const Layout& layout) {
  ASSERT_EQ(layout.places.size(), model.size());
  std::vector<int> placed(model.size());
  std::int64_t padding = 0;
  for (std::size_t c = 0; c < layout.chunks.size(); ++c) {
    std::int64_t end = 0;
    for (const int tensor : layout.chunks[c].tensors) {
      const auto t = static_cast<std::size_t>(tensor);
      ++placed[t];
      ASSERT_EQ(layout.places[t].chunk, static_cast<int>(c));
      ASSERT_GE(layout.places[t].offset, end) << "tensors overlap";
      ASSERT_EQ(layout.places[t].offset % align_of(model[t], rules), 0);
      end = layout.places[t].offset + model[t].elems;
      padding -= model[t].elems;
    }
    ASSERT_LE(end, layout.chunks[c].elems);
    padding += layout.chunks[c].elems;
  }
  ASSERT_EQ(layout.padding_elems, padding);
  for (std::size_t t = 0; t < model.size(); ++t) {
    ASSERT_EQ(placed[t], model[t].elems > 0 ? 1 : 0);
    if (model[t].elems == 0) {
      ASSERT_EQ(layout.places[t].chunk, -1);
    }
  }
}

// Regular chunks of a group are equal; whatever is larger holds one tensor; order is that of registration.
void check_groups(const Model& model, const LayoutRules& rules, const Layout& layout) {
  std::map<Group, std::vector<const ChunkSpec*>> groups;
  for (const ChunkSpec& chunk : layout.chunks) groups[group_of(chunk)].push_back(&chunk);
  for (const auto& entry : groups) {
    std::vector<const ChunkSpec*> regular;
    for (const ChunkSpec* chunk : entry.second) {
      if (chunk->elems <= layout.chunk_elems && chunk->tensors.size() > 1) regular.push_back(chunk);
      if (chunk->elems <= layout.chunk_elems) continue;
      ASSERT_EQ(chunk->tensors.size(), 1u);
      const auto& only = model[static_cast<std::size_t>(chunk->tensors.front())];
      ASSERT_LT(chunk->elems - only.elems, 2 * align_of(only, rules) * rules.ranks);
    }
    for (std::size_t i = 1; i < regular.size(); ++i) {
      ASSERT_EQ(regular[i]->elems, regular[0]->elems);
      ASSERT_GT(regular[i]->tensors.front(), regular[i - 1]->tensors.back());
    }
  }
}

// Every element of every tensor is in exactly one shard, where its place says.
void check_pieces(const Model& model, const LayoutRules& rules, const Layout& layout) {
  std::vector<std::vector<int>> owners(model.size());
  for (std::size_t t = 0; t < model.size(); ++t) owners[t].resize(static_cast<std::size_t>(model[t].elems));
  for (int rank = rules.ranks - 1; rank >= 0; --rank)
    for (std::size_t c = 0; c < layout.chunks.size(); ++c) {
      const ChunkSpec& chunk = layout.chunks[c];
      std::int64_t end = 0;
      for (const ShardPiece& piece : pieces_of_shard(layout, model, static_cast<int>(c), rank)) {
        const auto t = static_cast<std::size_t>(piece.tensor);
        ASSERT_GT(piece.count_elems, 0);
        ASSERT_GE(piece.offset_in_shard, end);
        end = piece.offset_in_shard + piece.count_elems;
        ASSERT_EQ(layout.places[t].offset + piece.first_elem,
                  rank * chunk.shard_elems + piece.offset_in_shard);
        for (std::int64_t i = 0; i < piece.count_elems; ++i)
          ++owners[t][static_cast<std::size_t>(piece.first_elem + i)];
      }
      ASSERT_LE(end, chunk.shard_elems);
    }
  for (const auto& owned : owners)
    ASSERT_TRUE(std::all_of(owned.begin(), owned.end(), [](int count) { return count == 1; }));
}

bool equal(const Layout& a, const Layout& b) {
  const auto chunks_equal = [](const ChunkSpec& x, const ChunkSpec& y) {
    return group_of(x) == group_of(y) && x.elems == y.elems && x.shard_elems == y.shard_elems &&
           x.tensors == y.tensors;
  };
  const auto places_equal = [](const TensorPlace& x, const TensorPlace& y) {
    return x.chunk == y.chunk && x.offset == y.offset;
  };
  return a.chunk_elems == b.chunk_elems && a.padding_elems == b.padding_elems &&
         std::equal(a.chunks.begin(), a.chunks.end(), b.chunks.begin(), b.chunks.end(), chunks_equal) &&
         std::equal(a.places.begin(), a.places.end(), b.places.begin(), b.places.end(), places_equal);
}

TEST(Layout, HoldsItsPropertiesOverRandomModels) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const Model model = random_model(random, 4096);
    const LayoutRules rules = random_rules(random);
    const Layout layout = make_layout(model, rules);
    SCOPED_TRACE(seed);
    ASSERT_NO_FATAL_FAILURE(check_chunks(model, rules, layout));
    ASSERT_NO_FATAL_FAILURE(check_places(model, rules, layout));
    ASSERT_NO_FATAL_FAILURE(check_groups(model, rules, layout));
    ASSERT_NO_FATAL_FAILURE(check_pieces(model, rules, layout));
    ASSERT_TRUE(equal(layout, make_layout(model, rules)));
  }
}

TEST(Layout, ATensorLargerThanAChunkHasItsOwn) {
  const Model model = {{10, DType::f32, DType::f32, false, false},
                       {1000, DType::f32, DType::f32, false, false},
                       {10, DType::f32, DType::f32, false, false}};
  LayoutRules rules;
  rules.ranks = 2;
  rules.chunk_elems = 64;
  const Layout layout = make_layout(model, rules);
  ASSERT_EQ(layout.chunks.size(), 2u);
  EXPECT_EQ(layout.places[0].chunk, layout.places[2].chunk);
  EXPECT_EQ(layout.places[2].offset, 16);
  EXPECT_EQ(layout.chunk_elems, 32);
  EXPECT_EQ(layout.chunks[static_cast<std::size_t>(layout.places[1].chunk)].elems, 1024);
}

TEST(Layout, NothingToPackIsNoChunk) {
  EXPECT_TRUE(make_layout({}, {}).chunks.empty());
  const Layout layout = make_layout({{0, DType::f32, DType::f32, false, false}}, {});
  EXPECT_TRUE(layout.chunks.empty());
  EXPECT_EQ(layout.places[0].chunk, -1);
  EXPECT_EQ(layout.padding_elems, 0);
}

std::int64_t occupied(const Layout& layout) {
  std::int64_t sum = 0;
  for (const ChunkSpec& chunk : layout.chunks) sum += chunk.elems;
  return sum;
}

// The search may not do worse than any size of the range that a user could have set in its place.
TEST(LayoutSearch, WastesNoMoreThanTheSizesItConsidered) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    Model model = random_model(random, 4096);
    for (TensorSpec& tensor : model) tensor = {tensor.elems, DType::f32, DType::f32, false, false};
    LayoutRules rules;
    rules.ranks = static_cast<int>(random() % 4) + 1;
    rules.search_min_elems = 500;
    rules.search_max_elems = 500 + 64 * 16;
    std::int64_t total = 0;
    for (const TensorSpec& tensor : model) total += round_up(tensor.elems, 16);
    const std::int64_t high = std::clamp(total / 8, rules.search_min_elems, rules.search_max_elems);
    const std::int64_t searched = occupied(make_layout(model, rules));
    for (std::int64_t i = 0; i <= 64; ++i) {
      rules.chunk_elems = high - (high - rules.search_min_elems) / 64 * i;
      if (rules.chunk_elems % 16 != 0) continue;  // a size that is set is rounded to the alignment
      ASSERT_LE(searched, occupied(make_layout(model, rules)))
          << "seed " << seed << " size " << rules.chunk_elems;
    }
  }
}

TEST(LayoutSearch, ModelsOfMediumSizeAreCutIntoSeveralChunks) {
  const Model model(32, {65536, DType::f32, DType::f32, false, false});
  const Layout layout = make_layout(model, {});
  EXPECT_GE(layout.chunks.size(), 4u);
  EXPECT_LE(layout.chunks.size(), 32u);
}

TEST(LayoutSearch, SmallModelsAreShardedToo) {
  const Model model(5, {100, DType::f32, DType::f32, false, false});
  LayoutRules rules;
  rules.ranks = 4;
  const Layout layout = make_layout(model, rules);
  ASSERT_FALSE(layout.chunks.empty());
  int holders = 0;
  for (int rank = 0; rank < 4; ++rank) holders += pieces_of_shard(layout, model, 0, rank).empty() ? 0 : 1;
  EXPECT_EQ(holders, 4);
  EXPECT_LT(layout.padding_elems, 5 * 16 + 64);
}

TEST(Layout, CountsBeyondThirtyTwoBits) {
  const std::int64_t huge = (std::int64_t{1} << 40) + 3;
  const Model model = {{huge, DType::f16, DType::f16, false, false},
                       {(std::int64_t{1} << 33) + 1, DType::f16, DType::f16, false, false},
                       {5, DType::f16, DType::f16, false, false}};
  LayoutRules rules;
  rules.ranks = 1000;
  const Layout layout = make_layout(model, rules);
  ASSERT_NO_FATAL_FAILURE(check_chunks(model, rules, layout));
  ASSERT_NO_FATAL_FAILURE(check_places(model, rules, layout));
  std::vector<std::int64_t> covered(model.size());
  for (std::size_t c = 0; c < layout.chunks.size(); ++c)
    for (int rank = 0; rank < rules.ranks; ++rank)
      for (const ShardPiece& piece : pieces_of_shard(layout, model, static_cast<int>(c), rank)) {
        const auto t = static_cast<std::size_t>(piece.tensor);
        ASSERT_EQ(piece.first_elem, covered[t]) << "ranks hold a tensor in order and without gaps";
        covered[t] += piece.count_elems;
      }
  for (std::size_t t = 0; t < model.size(); ++t) EXPECT_EQ(covered[t], model[t].elems);
}

}  // namespace
}  // namespace gemini
