// Gathering chunks over MPI, in pieces of any size.
#include <cstring>
#include <vector>

#include "collectives/mpi_transport.hpp"
#include "support/rank_assert.hpp"
#include "world.hpp"

namespace gemini {
namespace {

using test::world_rank;
using test::world_size;

constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64};

Topology one_node() {
  return make_topology(world_rank(), std::vector<int>(static_cast<std::size_t>(world_size())));
}

std::byte value_of(int rank, std::int64_t i) {
  return static_cast<std::byte>(rank * 89 + i * 13 + i / 256);
}

class Chunk {
 public:
  Chunk(std::int64_t shard_elems, DType type)
      : bytes_(shard_elems * size_of(type)),
        shard_(static_cast<std::size_t>(bytes_)),
        slot_(static_cast<std::size_t>(bytes_ * world_size() + kGuard), std::byte{0x5A}),
        chunk_{shard_elems, type, shard_.data()} {
    for (std::int64_t i = 0; i < bytes_; ++i) shard_[static_cast<std::size_t>(i)] = value_of(world_rank(), i);
  }
  std::unique_ptr<Operation> acquire(MpiTransport& transport) {
    return transport.acquire(chunk_, slot_.data());
  }
  // The shard stands in its place in the slot.
  std::unique_ptr<Operation> acquire_in_place(MpiTransport& transport) {
    ShardedChunk staged = chunk_;
    staged.shard = slot_.data() + world_rank() * bytes_;
    std::memcpy(staged.shard, shard_.data(), shard_.size());
    return transport.acquire(staged, slot_.data());
  }
  [[nodiscard]] bool is_whole() const {
    for (int rank = 0; rank < world_size(); ++rank)
      for (std::int64_t i = 0; i < bytes_; ++i)
        if (slot_[static_cast<std::size_t>(rank * bytes_ + i)] != value_of(rank, i)) return false;
    for (std::size_t i = slot_.size() - kGuard; i < slot_.size(); ++i)
      if (slot_[i] != std::byte{0x5A}) return false;
    return true;
  }
  [[nodiscard]] std::int64_t shard_bytes() const { return bytes_; }

 private:
  static constexpr std::int64_t kGuard = 64;
  std::int64_t bytes_;
  std::vector<std::byte> shard_, slot_;
  ShardedChunk chunk_;
};

// Case "counts over INT_MAX": with the limit lowered every gather takes several calls of MPI.
TEST(MpiGather, PutsEveryShardInItsPlaceInPiecesOfAnySize) {
  test::Queue queue;
  for (const std::int64_t limit :
       {std::int64_t{1}, std::int64_t{7}, std::int64_t{1000}, std::int64_t{INT_MAX}}) {
    MpiTransport transport(Communicator(MPI_COMM_WORLD), one_node(), limit);
    for (const DType type : kTypes)
      for (const std::int64_t elems : {1, 6, 7, 8, 33, 2001}) {
        if (elems / limit > 400) continue;
        Chunk chunk(elems, type);
        queue.run(chunk.acquire(transport), "a test");
        EXPECT_TRUE(chunk.is_whole()) << elems << " " << name_of(type) << " limit " << limit;
        Chunk staged(elems, type);
        queue.run(staged.acquire_in_place(transport), "a test");
        EXPECT_TRUE(staged.is_whole()) << elems << " " << name_of(type) << " in place, limit " << limit;
      }
    transport.free_communicators();
  }
}

TEST(MpiGather, SeveralInTheQueue) {
  test::Queue queue;
  MpiTransport transport(Communicator(MPI_COMM_WORLD), one_node(), 100);
  std::vector<Chunk> chunks;
  chunks.reserve(10);
  for (int c = 0; c < 10; ++c) chunks.emplace_back(50 * c + 1, kTypes[c % 6]);
  Ticket last = 0;
  for (Chunk& chunk : chunks) last = queue.submit(chunk.acquire(transport));
  queue.wait(last, "a test");
  for (const Chunk& chunk : chunks) EXPECT_TRUE(chunk.is_whole());
  transport.free_communicators();
}

TEST(MpiGather, CountsWhatItSends) {
  test::Queue queue;
  MpiTransport transport(Communicator(MPI_COMM_WORLD), one_node());
  Chunk chunk(100, DType::f64);
  queue.run(chunk.acquire(transport), "a test");
  EXPECT_EQ(transport.wire().gather_bytes, 800 * (world_size() - 1));
  EXPECT_EQ(transport.wire().reduce_bytes, 0);
  transport.reset_wire();
  EXPECT_EQ(transport.wire().gather_bytes, 0);
  transport.free_communicators();
}

// Nothing is computed in 32 bits: operations on more than 2^31 elements know their size.
TEST(MpiGather, CountsBeyondThirtyTwoBits) {
  constexpr std::int64_t kElems = (std::int64_t{1} << 33) + 5;
  const ShardedChunk chunk{kElems, DType::f64, nullptr};
  EXPECT_EQ(chunk.shard_bytes(), 8 * kElems);
  MpiTransport transport(Communicator(MPI_COMM_WORLD), one_node());
  (void)transport.acquire(chunk, nullptr);
  EXPECT_EQ(transport.wire().gather_bytes, 8 * kElems * (world_size() - 1));
  std::byte gradient{};
  (void)transport.reduce({kElems, DType::f64, &gradient, nullptr, true, 1.0});
  EXPECT_EQ(transport.wire().reduce_bytes, 8 * kElems * (world_size() - 1));
  transport.free_communicators();
}

TEST(SelfTransport, ShowsTheShardItselfOrWhereItWasStaged) {
  const auto transport = make_self_transport();
  test::Queue queue;
  std::byte shard[64]{};
  const ShardedChunk chunk{8, DType::f64, shard};
  EXPECT_FALSE(transport->needs_slot());
  EXPECT_EQ(transport->ranks(), 1);
  queue.run(transport->acquire(chunk, nullptr), "a test");
  EXPECT_EQ(transport->view(chunk, nullptr), shard);
  std::byte slot[64]{};
  queue.run(transport->acquire(chunk, slot), "a test");
  EXPECT_EQ(transport->view(chunk, slot), slot);
}

}  // namespace
}  // namespace gemini
