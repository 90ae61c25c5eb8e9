// The chunk store over a transport that copies one rank's shard: slots, budgets, counters.
#include "chunks/chunk_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/error.hpp"
#include "memory/poison.hpp"

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
  [[nodiscard]] Layout layout() const {
    LayoutRules rules;
    rules.chunk_elems = kElems;
    return make_layout(tensors_, rules);
  }

  std::vector<TensorSpec> tensors_;
  CopyTransport transport_;
  CommQueue queue_{Communicator{}, 0, false};
};

TEST_F(ChunkStoreTest, NeedsWhatItSays) {
  Tier tier("device_memory", -1);
  const TrainingState state{true, 2};
  ChunkStore store(tensors_, layout(), 0, tier, transport_, queue_);
  for (Chunk& chunk : store.chunks()) store.add_training_state(chunk, state);
  EXPECT_EQ(tier.held(), ChunkStore::bytes_needed(store.layout(), state, true));
  const auto bytes = store.shard_bytes();
  EXPECT_EQ(bytes.param, kElems * (3 * 4 + 2 + 4));  // the f16 tensor has an F32 master
  EXPECT_EQ(bytes.grad, kElems * 4 * 4);
  EXPECT_EQ(bytes.optimizer, 2 * bytes.grad);
}

TEST_F(ChunkStoreTest, GathersAndReleases) {
  Tier tier("device_memory", -1);
  ChunkStore store(tensors_, layout(), 0, tier, transport_, queue_);
  std::memset(store[1].shard.data(), 3, kElems * 4);
  store.gather({1, 2});
  EXPECT_EQ(store.counters().gathers, 2);
  EXPECT_EQ(store.counters().gathered_bytes, 2 * kElems * 4);
  const std::byte* values = store.gathered(store[1]);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values) % 64, 0u);
  EXPECT_TRUE(std::all_of(values, values + kElems * 4, [](std::byte byte) { return byte == std::byte{3}; }));
  store.release(1);
  store.release(2);
  EXPECT_EQ(store.counters().gathered_bytes, 0);
  EXPECT_EQ(store.counters().gathered_peak_bytes, 2 * kElems * 4);
  store.reset_counters();
  EXPECT_EQ(store.counters().gathered_peak_bytes, 0);
  EXPECT_EQ(store.counters().gathers, 0);
}

TEST_F(ChunkStoreTest, ReleasesOnlyWhatIsGatheredAndNotLeased) {
  Tier tier("device_memory", -1);
  ChunkStore store(tensors_, layout(), 0, tier, transport_, queue_);
  EXPECT_THROW(store.release(0), Error);
  store.gather({0});
  store[0].leases = 1;
  EXPECT_THROW(store.release(0), Error);
  store[0].leases = 0;
  store.release(0);
}

TEST_F(ChunkStoreTest, GathersAllOrNone) {
  const std::int64_t shards = ChunkStore::bytes_needed(layout(), {true, 0}, true);
  Tier tier("device_memory", shards + 2 * kElems * 4);
  ChunkStore store(tensors_, layout(), 0, tier, transport_, queue_);
  const std::int64_t idle = tier.limit() - tier.held();
  std::vector<Block> rest;
  rest.push_back(tier.allocate(idle - 2 * kElems * 4, "a test"));
  EXPECT_THROW(store.gather({0, 1, 2}), Error);
  for (const Chunk& chunk : store.chunks()) {
    EXPECT_EQ(chunk.slot, nullptr);
    EXPECT_FALSE(chunk.gathered);
  }
  EXPECT_EQ(store.counters().gathered_bytes, 0);
  store.gather({0, 1});
  store.release(0);
  store.gather({2});
  store.release(1);
  store.release(2);
  EXPECT_LE(tier.peak(), tier.limit());
}

TEST_F(ChunkStoreTest, FindsWritesIntoTheGatheredCopy) {
  if (!kDebugMemory) GTEST_SKIP() << "release builds do not look";
  Tier tier("device_memory", -1);
  ChunkStore store(tensors_, layout(), 0, tier, transport_, queue_);
  store.gather({0});
  EXPECT_NO_THROW(store.check_unwritten(store[0]));
  store.gathered(store[0])[kElems] = std::byte{1};
  EXPECT_THROW(store.check_unwritten(store[0]), Error);
  store.refresh({0});
  EXPECT_NO_THROW(store.check_unwritten(store[0]));
  store.release(0);
}

}  // namespace
}  // namespace gemini
