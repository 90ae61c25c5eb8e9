// Where data at rest goes, by hand and over random items.
#include "placement/homes.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace gemini {
namespace {

// Of each chunk: its shard, gradient sum, master and two states.
std::vector<DataItem> items_of(int chunks, std::int64_t bytes) {
  std::vector<DataItem> items;
  for (int chunk = 0; chunk < chunks; ++chunk)
    for (const DataKind kind : {DataKind::param_shard, DataKind::gradient_sum, DataKind::master,
                                DataKind::state0, DataKind::state1})
      items.push_back({chunk, kind, bytes});
  return items;
}

HomeRooms rooms(std::int64_t compute, std::int64_t host, bool files = false) {
  return {compute, host, files};
}

constexpr Home C = Home::compute, H = Home::host, F = Home::file, N = Home::none;
using Places = std::vector<Home>;

TEST(Homes, ComputeMemoryIsGivenKindByKindAndChunkByChunk) {
  const auto items = items_of(2, 10);
  EXPECT_EQ(choose_homes(items, rooms(-1, 0)).of, Places(10, C));
  EXPECT_EQ(choose_homes(items, rooms(30, -1)).of, (Places{C, C, H, H, H, C, H, H, H, H}));
  EXPECT_EQ(choose_homes(items, rooms(80, -1)).of, (Places{C, C, C, C, C, C, C, C, H, H}));
}

TEST(Homes, TheHostIsFilledInTheSameOrderAndThenFiles) {
  const auto items = items_of(2, 10);
  EXPECT_EQ(choose_homes(items, rooms(20, 30, true)).of, (Places{C, H, H, F, F, C, H, F, F, F}));
  const Homes homes = choose_homes(items, rooms(20, 30, false));
  EXPECT_EQ(homes.of, (Places{C, H, H, N, N, C, H, N, N, N}));
  EXPECT_EQ(homes.missing_bytes, 50);
}

TEST(Homes, WhatDoesNotFitLeavesItsPlaceToSmallerItems) {
  const std::vector<DataItem> items = {{0, DataKind::param_shard, 8}, {1, DataKind::param_shard, 3}};
  EXPECT_EQ(choose_homes(items, rooms(5, -1)).of, (Places{H, C}));
}

TEST(Homes, SharesSendTheLastChunksToTheHost) {
  const auto items = items_of(2, 10);
  EXPECT_EQ(choose_homes(items, rooms(-1, -1), {0, 0}).of, Places(10, C));
  EXPECT_EQ(choose_homes(items, rooms(-1, -1), {1, 0}).of, (Places{H, C, C, C, C, H, C, C, C, C}));
  EXPECT_EQ(choose_homes(items, rooms(-1, -1), {0.5, 0.5}).of, (Places{C, C, C, C, C, H, H, H, H, H}));
  EXPECT_EQ(choose_homes(items, rooms(-1, -1), {0.4, 0.7}).of, (Places{C, C, C, H, H, H, H, H, H, H}));
  EXPECT_EQ(choose_homes(items, rooms(-1, 30, true), {0, 1}).of, (Places{C, H, H, F, F, C, H, F, F, F}));
  EXPECT_EQ(choose_homes(items, rooms(10, -1), {0, 0.5}).of, (Places{C, H, H, H, H, H, H, H, H, H}))
      << "compute memory holds no more";
}

TEST(Homes, ReliefMovesStatesOfTheLastChunksFirst) {
  const auto items = items_of(2, 10);
  const Places homes(10, C);
  std::vector<bool> busy(10);
  const auto moved = [&](const HomeRooms& free, std::int64_t wanted) {
    return relieve(items, homes, busy, free, wanted).moves;
  };
  EXPECT_TRUE(moved(rooms(0, -1), 0).empty());
  EXPECT_EQ(moved(rooms(0, -1), 15), (std::vector<HomeMove>{{9, H}, {8, H}}));
  EXPECT_EQ(moved(rooms(0, 10, true), 45), (std::vector<HomeMove>{{9, H}, {8, F}, {4, F}, {3, F}, {7, F}}));
  busy[9] = busy[4] = true;
  EXPECT_EQ(moved(rooms(0, -1), 25), (std::vector<HomeMove>{{8, H}, {3, H}, {7, H}}));
  const Relief all = relieve(items, homes, busy, rooms(0, 30), 1000);
  EXPECT_EQ(all.freed_bytes, 30) << "the host takes no more";
  EXPECT_EQ(all.moves.size(), 3U);
}

TEST(Homes, NoTierIsFilledBeyondItsRoom) {
  std::mt19937 random(3);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 2000; ++round) {
    std::vector<DataItem> items = items_of(1 + below(8), 0);
    std::int64_t all = 0;
    for (DataItem& item : items) all += item.bytes = 4096 * below(5);
    const HomeRooms with =
        rooms(below(static_cast<int>(all) + 1), below(static_cast<int>(all) + 1), below(2) == 0);
    const OffloadShares shares{0.25 * below(5), 0.25 * below(5)};
    const Homes homes = below(2) == 0 ? choose_homes(items, with) : choose_homes(items, with, shares);
    std::map<Home, std::int64_t> filled;
    for (std::size_t i = 0; i < items.size(); ++i) filled[homes.of[i]] += items[i].bytes;
    EXPECT_LE(filled[C], with.compute_bytes);
    EXPECT_LE(filled[H], with.host_bytes);
    EXPECT_EQ(filled[F] > 0 && !with.files, false);
    EXPECT_EQ(filled[N], homes.missing_bytes);
    EXPECT_EQ(homes.missing_bytes > 0 && with.files, false);

    std::vector<bool> busy;
    for (std::size_t i = 0; i < items.size(); ++i) busy.push_back(below(4) == 0);
    const HomeRooms free = rooms(0, with.host_bytes - filled[H], with.files);
    const std::int64_t wanted = below(static_cast<int>(all) + 1);
    const Relief relief = relieve(items, homes.of, busy, free, wanted);
    std::int64_t to_host = 0, freed = 0;
    for (const HomeMove& move : relief.moves) {
      const auto i = static_cast<std::size_t>(move.item);
      EXPECT_LT(freed, wanted) << "nothing moves that need not";
      EXPECT_EQ(homes.of[i], C);
      EXPECT_FALSE(busy[i]);
      EXPECT_TRUE(move.to == H || (move.to == F && with.files));
      freed += items[i].bytes;
      if (move.to == H) to_host += items[i].bytes;
    }
    EXPECT_EQ(freed, relief.freed_bytes);
    EXPECT_LE(to_host, free.host_bytes);
  }
}

}  // namespace
}  // namespace gemini
