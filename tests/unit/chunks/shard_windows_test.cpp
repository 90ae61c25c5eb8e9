// Passes over shards whose items lie in random tiers, against a plain model of all their bytes.
#include "chunks/shard_windows.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "unit/memory/file_test_support.hpp"

namespace gemini::test {
namespace {

constexpr Place kPlaces[] = {Place::compute, Place::host, Place::file};
constexpr std::int64_t kWindow = Staging::kMinElems;

class Shards : public testing::Test {
 protected:
  using Bytes = std::vector<unsigned char>;

  std::uint64_t draw(std::uint64_t below) { return random() % below; }

  // A chunk with some of the items, each in some tier and full of random bytes.
  void add_chunk(std::int64_t elems, DType dtype) {
    Chunk& chunk = chunks.emplace_back();
    chunk.index = static_cast<int>(chunks.size()) - 1;
    chunk.spec.dtype = dtype;
    chunk.spec.shard_elems = elems;
    for (int i = 0; i < kItems; ++i) {
      if (draw(5) == 0) continue;
      const auto item = static_cast<Item>(i);
      const std::int64_t bytes = elems * size_of(chunk.dtype_of(item));
      chunk.item(item) = Stored(tiers, kPlaces[draw(3)], bytes, "a test");
      Bytes& expected = model[{chunk.index, i}];
      expected = random_bytes(bytes, static_cast<unsigned>(random()));
      chunk.item(item).store(tiers, 0, bytes, expected.data());
    }
  }

  // What is read is what the model says; what is written is new, here and in the model.
  void visit(const ShardWindow& window, Items reads, Items writes) {
    for (int i = 0; i < kItems; ++i) {
      const bool there = static_cast<bool>(window.chunk->items[static_cast<std::size_t>(i)]);
      const bool touched = there && ((reads | writes) >> i & 1U) != 0;
      std::byte* at = window.at[static_cast<std::size_t>(i)];
      ASSERT_EQ(at != nullptr, touched) << "item " << i;
      if (!touched) continue;
      const std::int64_t size = size_of(window.chunk->dtype_of(static_cast<Item>(i)));
      const std::int64_t bytes = window.count * size;
      unsigned char* expected = model[{window.chunk->index, i}].data() + window.first * size;
      const bool as_expected = std::memcmp(at, expected, static_cast<std::size_t>(bytes)) == 0;
      ASSERT_TRUE(as_expected || (reads >> i & 1U) == 0) << "item " << i;
      if ((writes >> i & 1U) == 0) continue;
      const Bytes fresh = random_bytes(bytes, static_cast<unsigned>(random()));
      std::memcpy(at, fresh.data(), fresh.size());
      std::copy(fresh.begin(), fresh.end(), expected);
    }
  }

  // Every element of each chunk once and in order.
  void pass(Items reads, Items writes, const Staging& staging) {
    ShardPass shards(tiers, staging, reads, writes);
    for (Chunk& chunk : chunks) shards.add(chunk);
    std::size_t chunk = 0;
    std::int64_t seen = 0;
    for (ShardWindow window; shards.next(window);) {
      while (chunk < chunks.size() && seen == chunks[chunk].spec.shard_elems) ++chunk, seen = 0;
      ASSERT_EQ(window.chunk, &chunks[chunk]);
      ASSERT_EQ(window.first, seen);
      seen += window.count;
      ASSERT_NO_FATAL_FAILURE(visit(window, reads, writes));
    }
    EXPECT_EQ(seen, chunks.back().spec.shard_elems);
  }

  void expect_model() {
    for (auto& [where, expected] : model) {
      const Stored& stored =
          chunks[static_cast<std::size_t>(where.first)].item(static_cast<Item>(where.second));
      Bytes bytes(expected.size());
      stored.load(tiers, 0, stored.bytes(), bytes.data());
      ASSERT_EQ(bytes, expected) << "chunk " << where.first << ", item " << where.second;
    }
  }

  std::mt19937_64 random{11};
  Directory directory;
  Tier compute{"device_memory", -1};
  Tier host{"host_memory", -1};
  SpillFile files{directory.path()};
  Tiers tiers{compute, host, &files};
  std::deque<Chunk> chunks;
  std::map<std::pair<int, int>, Bytes> model;
};

TEST_F(Shards, AreReadAndWrittenWhereverTheyLie) {
  constexpr DType kTypes[] = {DType::f32, DType::f64, DType::bf16};
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    chunks.clear();
    model.clear();
    const Staging staging(host, kWindow * static_cast<std::int64_t>(draw(3) + 1));
    for (std::uint64_t c = draw(4) + 1; c > 0; --c)
      add_chunk(static_cast<std::int64_t>(draw(5 * kWindow)) + 1, kTypes[draw(3)]);
    for (int passes = 0; passes < 4; ++passes) {
      const auto writes = static_cast<Items>(draw(1U << kItems));
      // What is written in part would be lost if it were not read: a pass that writes, writes all of it.
      ASSERT_NO_FATAL_FAILURE(pass(static_cast<Items>(draw(1U << kItems)), writes, staging));
      ASSERT_NO_FATAL_FAILURE(expect_model());
    }
  }
}

TEST_F(Shards, InMemoryAreShownWholeAndInPlace) {
  add_chunk(3 * kWindow + 5, DType::f32);
  Chunk& chunk = chunks.front();
  for (int i = 0; i < kItems; ++i)
    chunk.items[static_cast<std::size_t>(i)].move_to(tiers, Place::host, "a test");
  ShardPass shards(tiers, Staging{}, ~0U, 0);
  shards.add(chunk);
  ShardWindow window;
  ASSERT_TRUE(shards.next(window));
  EXPECT_EQ(window.count, 3 * kWindow + 5);
  for (std::size_t i = 0; i < kItems; ++i) EXPECT_EQ(window.at[i], chunk.items[i].data());
  EXPECT_FALSE(shards.next(window));
}

// A caller that throws; the staging buffers may go at once.
TEST_F(Shards, LeftEarlyAreWrittenAsFarAsTheyWere) {
  add_chunk(4 * kWindow, DType::f32);
  chunks.front().item(Item::param) = Stored(tiers, Place::file, 4 * kWindow * 4, "a test");
  const std::vector<float> ones(static_cast<std::size_t>(kWindow), 1.0F);
  {
    const Staging staging(host, kWindow);
    ShardPass shards(tiers, staging, 0, set_of(Item::param));
    shards.add(chunks.front());
    ShardWindow window;
    for (int visited = 0; visited < 3; ++visited) {
      ASSERT_TRUE(shards.next(window));
      std::memcpy(window.at[0], ones.data(), ones.size() * sizeof(float));
    }
  }
  std::vector<float> values(4 * kWindow, 7.0F);
  chunks.front().item(Item::param).load(tiers, 0, 4 * kWindow * 4, values.data());
  for (std::size_t window = 0; window < 4; ++window)
    EXPECT_EQ(values[window * kWindow + 3], window < 2 ? 1.0F : 0.0F) << "window " << window;
}

}  // namespace
}  // namespace gemini::test
