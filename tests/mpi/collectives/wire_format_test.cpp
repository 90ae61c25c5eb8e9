// Values in other formats on the wire: every rank sees them as they travelled.
#include "collectives/wire_format.hpp"

#include <cmath>
#include <cstring>
#include <vector>

#include "collectives/mpi_transport.hpp"
#include "kernels/reference/reference.hpp"
#include "kernels/runtime.hpp"
#include "support/rank_assert.hpp"
#include "world.hpp"

namespace gemini {
namespace {

using test::world_rank;
using test::world_size;
using Values = std::vector<std::byte>;

constexpr const char* kFormats[] = {"same", "bf16", "f16", "f8_e4m3"};
constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

Values values_of(DType type, std::int64_t count, int seed) {
  Values values(static_cast<std::size_t>(count * size_of(type)));
  for (std::int64_t i = 0; i < count; ++i)
    reference::store(type, values.data(), i, std::sin(static_cast<double>(i * 7 + seed)) * 3);
  return values;
}

Values travelled(const WireFormat& format, const Values& values, DType type) {
  const auto count = static_cast<std::int64_t>(values.size()) / size_of(type);
  Values wire(static_cast<std::size_t>(format.bytes_for(count)));
  Values arrived(values.size());
  format.pack(values.data(), count, wire.data());
  format.unpack(wire.data(), count, arrived.data());
  return arrived;
}

Topology one_node() {
  return make_topology(world_rank(), std::vector<int>(static_cast<std::size_t>(world_size())));
}

class WireTest : public testing::Test {
 protected:
  WireTest() { kernels::start(); }
  test::Queue queue_;
};

TEST_F(WireTest, IsNarrowerOrNothingChanges) {
  EXPECT_FALSE(WireFormat(DType::f32, "same").converts());
  EXPECT_FALSE(WireFormat(DType::bf16, "f16").converts());
  EXPECT_FALSE(WireFormat(DType::f16, "f16").converts());
  EXPECT_EQ(WireFormat(DType::f16, "bf16").bytes_for(10), 20);
  EXPECT_EQ(WireFormat(DType::f64, "bf16").bytes_for(10), 20);
  EXPECT_EQ(WireFormat(DType::f32, "same").bytes_for(10), 40);
  EXPECT_EQ(WireFormat(DType::bf16, "f8_e4m3").bytes_for(256), 256 + 8);
}

TEST_F(WireTest, RoundsOnce) {
  for (const DType type : {DType::f64, DType::f32})
    for (const bool half : {true, false}) {
      const DType narrow = half ? DType::f16 : DType::bf16;
      const Values values = values_of(type, 200, 1);
      const Values arrived = travelled(WireFormat(type, name_of(narrow)), values, type);
      for (std::int64_t i = 0; i < 200; ++i) {
        std::uint16_t rounded = 0;
        reference::store(narrow, &rounded, 0, reference::load(type, values.data(), i));
        EXPECT_EQ(reference::load(type, arrived.data(), i), reference::load(narrow, &rounded, 0));
      }
    }
}

TEST_F(WireTest, GathersShowTheSameOnEveryRankTheOwnerToo) {
  for (const char* name : kFormats)
    for (const DType type : kTypes)
      for (const std::int64_t limit : {std::int64_t{1}, std::int64_t{300}, std::int64_t{INT_MAX}})
        for (const bool in_place : {false, true}) {
          constexpr std::int64_t kElems = 1000;
          const WireFormat format(type, name);
          MpiTransport transport(Communicator(MPI_COMM_WORLD), one_node(), limit, {name, "same"});
          Values shard = values_of(type, kElems, world_rank());
          Values slot(shard.size() * static_cast<std::size_t>(world_size()));
          ShardedChunk chunk{kElems, type, shard.data()};
          if (in_place) {
            chunk.shard = slot.data() + world_rank() * chunk.shard_bytes();
            std::memcpy(chunk.shard, shard.data(), shard.size());
          }
          queue_.run(transport.acquire(chunk, slot.data()), "a test");
          Values expected;
          for (int rank = 0; rank < world_size(); ++rank) {
            Values theirs = values_of(type, kElems, rank);
            if (world_size() > 1) theirs = travelled(format, theirs, type);
            expected.insert(expected.end(), theirs.begin(), theirs.end());
          }
          EXPECT_TRUE(slot == expected) << name << " of " << name_of(type) << " limit " << limit;
          EXPECT_EQ(transport.wire().gather_bytes, format.bytes_for(kElems) * (world_size() - 1));
          transport.free_communicators();
        }
}

TEST_F(WireTest, ReductionsAddWhatTravelledInWideArithmetic) {
  constexpr std::int64_t kElems = 500;
  for (const char* name : {"same", "bf16", "f16"})
    for (const DType type : {DType::f64, DType::f32})
      for (const std::int64_t limit : {std::int64_t{7}, std::int64_t{INT_MAX}})
        for (const int silent : {-1, 0, world_size() - 1}) {
          const WireFormat format(type, world_size() > 1 ? name : "same");
          MpiTransport transport(Communicator(MPI_COMM_WORLD), one_node(), limit, {"same", name});
          const Values mine = values_of(type, kElems * world_size(), world_rank());
          Values sum(static_cast<std::size_t>(kElems * size_of(type)));
          queue_.run(transport.reduce({kElems, type, silent == world_rank() ? nullptr : mine.data(),
                                       sum.data(), true, 1.0}),
                     "a test");
          bool right = true;
          std::vector<Values> all;
          for (int rank = 0; rank < world_size(); ++rank)
            all.push_back(travelled(format, values_of(type, kElems * world_size(), rank), type));
          for (std::int64_t i = 0; i < kElems; ++i) {
            double expected = 0;
            for (int rank = 0; rank < world_size(); ++rank) {
              if (rank == silent) continue;
              expected += reference::load(type, all[static_cast<std::size_t>(rank)].data(),
                                          world_rank() * kElems + i);
              if (type == DType::f32) expected = static_cast<float>(expected);
            }
            right = right && reference::load(type, sum.data(), i) == expected;
          }
          EXPECT_TRUE(right) << name << " of " << name_of(type) << " limit " << limit;
          EXPECT_EQ(transport.wire().reduce_bytes,
                    silent == world_rank() ? 0 : format.bytes_for(kElems) * (world_size() - 1));
          transport.free_communicators();
        }
}

}  // namespace
}  // namespace gemini
