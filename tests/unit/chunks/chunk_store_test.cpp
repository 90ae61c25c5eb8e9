// The chunk store over a transport that copies one rank's shard: slots, budgets, counters.
#include "chunks/chunk_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/error.hpp"
#include "memory/poison.hpp"
#include "memory/stored.hpp"

namespace gemini {
namespace {

class Copy final : public Operation {
 public:
  Copy(const ShardedChunk& chunk, std::byte* slot) : chunk_(chunk), slot_(slot) {}
  bool poll() override {
    std::memcpy(slot_, chunk_.shard, static_cast<std::size_t>(chunk_.shard_bytes()));
    return true;
  }

 private:
  ShardedChunk chunk_;
  std::byte* slot_;
};

class CopyTransport final : public Transport {
 public:
  [[nodiscard]] const char* name() const override { return "copy"; }
  [[nodiscard]] int ranks() const override { return 1; }
  [[nodiscard]] bool needs_slot() const override { return true; }
  std::unique_ptr<Operation> acquire(const ShardedChunk& chunk, std::byte* slot) override {
    return std::make_unique<Copy>(chunk, slot);
  }
  [[nodiscard]] std::byte* view(const ShardedChunk&, std::byte* slot) const override { return slot; }
  std::unique_ptr<Operation> reduce(const GradientReduction&) override { return nullptr; }
};

constexpr std::int64_t kElems = 2048;  // two pages of f32

class ChunkStoreTest : public testing::Test {
 protected:
  ChunkStoreTest() : tensors_(3, {kElems, DType::f32, DType::f32, false, false}) {
    tensors_.push_back({kElems, DType::f16, DType::f16, false, false});
  }
  static Place in_compute(int, Item) { return Place::compute; }
  [[nodiscard]] Layout layout() const {
    LayoutRules rules;
    rules.chunk_elems = kElems;
    return make_layout(tensors_, rules);
  }

  std::vector<TensorSpec> tensors_;
  Tier host_{"host_memory", -1};
  CopyTransport transport_;
  CommQueue queue_{Communicator{}, 0, false};
};

TEST_F(ChunkStoreTest, NeedsWhatItSays) {
  Tier tier("device_memory", -1);
  const TrainingState state{true, 2};
  Tiers tiers{tier, host_};
  ChunkStore store(tensors_, layout(), 0, tiers, transport_, queue_, in_compute);
  for (Chunk& chunk : store.chunks()) store.add_training_state(chunk, state, in_compute);
  std::int64_t needed = 0;
  for (const ChunkSpec& spec : store.layout().chunks)
    for (int item = 0; item < kItems; ++item) needed += item_bytes(spec, static_cast<Item>(item), state);
  EXPECT_EQ(tier.held(), needed);
  const auto bytes = store.shard_bytes();
  EXPECT_EQ(bytes.param, kElems * (3 * 4 + 2 + 4));  // the f16 tensor has an F32 master
  EXPECT_EQ(bytes.grad, kElems * 4 * 4);
  EXPECT_EQ(bytes.optimizer, 2 * bytes.grad);
}

TEST_F(ChunkStoreTest, GathersAndReleases) {
  Tier tier("device_memory", -1);
  Tiers tiers{tier, host_};
  ChunkStore store(tensors_, layout(), 0, tiers, transport_, queue_, in_compute);
  std::memset(store[1].item(Item::param).data(), 3, kElems * 4);
  store.gather(store[1]);
  store.gather(store[2]);
  EXPECT_EQ(store.counters().gathers, 2);
  EXPECT_EQ(store.counters().gathered_bytes, 2 * kElems * 4);
  const std::byte* values = store.gathered(store[1]);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values) % 64, 0u);
  EXPECT_TRUE(std::all_of(values, values + kElems * 4, [](std::byte byte) { return byte == std::byte{3}; }));
  store.release(store[1]);
  store.release(store[2]);
  EXPECT_EQ(store.counters().gathered_bytes, 0);
  EXPECT_EQ(store.counters().gathered_peak_bytes, 2 * kElems * 4);
  store.reset_counters();
  EXPECT_EQ(store.counters().gathered_peak_bytes, 0);
  EXPECT_EQ(store.counters().gathers, 0);
}

TEST_F(ChunkStoreTest, ReleasesOnlyWhatIsGatheredAndNotLeased) {
  Tier tier("device_memory", -1);
  Tiers tiers{tier, host_};
  ChunkStore store(tensors_, layout(), 0, tiers, transport_, queue_, in_compute);
  EXPECT_THROW(store.release(store[0]), Error);
  store.gather(store[0]);
  store[0].status->leases = 1;
  EXPECT_THROW(store.release(store[0]), Error);
  store[0].status->leases = 0;
  store.release(store[0]);
}

TEST_F(ChunkStoreTest, GathersFromEveryTier) {
  Tier tier("device_memory", -1);
  SpillFile files(testing::TempDir());
  Tiers tiers{tier, host_, &files};
  const auto home = [](int chunk, Item) { return static_cast<Place>(chunk % 3); };
  ChunkStore store(tensors_, layout(), 0, tiers, transport_, queue_, home);
  for (Chunk& chunk : store.chunks()) {
    const std::vector<std::byte> values(static_cast<std::size_t>(chunk.gathered_bytes()), std::byte{7});
    chunk.item(Item::param).store(tiers, 0, chunk.gathered_bytes(), values.data());
  }
  for (int round = 0; round < 2; ++round) {  // the second after each shard moved on
    for (Chunk& chunk : store.chunks()) store.fetch(chunk);
    for (Chunk& chunk : store.chunks()) {
      store.await(chunk);
      const std::byte* values = store.gathered(chunk);
      EXPECT_TRUE(
          std::all_of(values, values + chunk.gathered_bytes(), [](std::byte b) { return b == std::byte{7}; }))
          << "chunk " << chunk.index << ", round " << round;
      store.release(chunk);
      store.move(chunk, Item::param, static_cast<Place>((chunk.index + 1) % 3));
    }
  }
}

TEST_F(ChunkStoreTest, DoesNotMoveAShardUnderItsCopy) {
  Tier tier("device_memory", -1);
  Tiers tiers{tier, host_};
  ChunkStore store(tensors_, layout(), 0, tiers, transport_, queue_, in_compute);
  store.fetch(store[0]);
  EXPECT_THROW(store.move(store[0], Item::param, Place::host), Error);
  store.release(store[0]);  // waits for the copy on its way
  store.move(store[0], Item::param, Place::host);
  EXPECT_EQ(store[0].item(Item::param).place(), Place::host);
}

TEST_F(ChunkStoreTest, FindsWritesIntoTheGatheredCopy) {
  if (!kDebugMemory) GTEST_SKIP() << "release builds do not look";
  Tier tier("device_memory", -1);
  Tiers tiers{tier, host_};
  ChunkStore store(tensors_, layout(), 0, tiers, transport_, queue_, in_compute);
  store.gather(store[0]);
  EXPECT_NO_THROW(store.check_unwritten(store[0]));
  store.gathered(store[0])[kElems] = std::byte{1};
  EXPECT_THROW(store.check_unwritten(store[0]), Error);
  store.refresh(store[0]);
  store.await(store[0]);
  EXPECT_NO_THROW(store.check_unwritten(store[0]));
  store.release(store[0]);
}

}  // namespace
}  // namespace gemini
