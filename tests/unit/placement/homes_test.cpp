// Where data at rest goes, by hand and over random items.
#include "placement/homes.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace gemini {
namespace {

// Of each chunk: its shard, gradient sum, master and two states.
std::vector<RestingItem> items_of(int chunks, std::int64_t bytes) {
  std::vector<RestingItem> items;
  for (int chunk = 0; chunk < chunks; ++chunk)
    for (const Item kind : {Item::param, Item::grad_sum, Item::master, Item::state1, Item::state2})
      items.push_back({chunk, kind, bytes});
  return items;
}

Rooms rooms(std::int64_t compute, std::int64_t host, bool files = false) {
  return {compute, host, files};
}

constexpr Place C = Place::compute, H = Place::host, F = Place::file;
using Places = std::vector<Place>;

Places filled(std::vector<RestingItem> items, const Rooms& rooms, const OffloadShares& shares = {}) {
  EXPECT_EQ(fill_homes(items, rooms, shares), 0);
  Places places;
  for (const RestingItem& item : items) places.push_back(item.home);
  return places;
}

TEST(Homes, ComputeMemoryIsGivenToParametersAndThenChunkByChunk) {
  const auto items = items_of(2, 10);
  EXPECT_EQ(filled(items, rooms(-1, 0)), Places(10, C));
  EXPECT_EQ(filled(items, rooms(30, -1)), (Places{C, C, H, H, H, C, H, H, H, H}));
  EXPECT_EQ(filled(items, rooms(80, -1)), (Places{C, C, C, C, C, C, C, C, H, H}));
}

TEST(Homes, TheHostIsFilledInTheSameOrderAndThenFiles) {
  const auto items = items_of(2, 10);
  EXPECT_EQ(filled(items, rooms(20, 30, true)), (Places{C, H, H, H, F, C, F, F, F, F}));
  auto copy = items;
  EXPECT_EQ(fill_homes(copy, rooms(20, 30, false)), 50) << "what fits nowhere";
}

TEST(Homes, WhatDoesNotFitLeavesItsPlaceToSmallerItems) {
  const std::vector<RestingItem> items = {{0, Item::param, 8}, {1, Item::param, 3}};
  EXPECT_EQ(filled(items, rooms(5, -1)), (Places{H, C}));
}

TEST(Homes, SharesSendTheLastChunksToTheHost) {
  const auto items = items_of(2, 10);
  EXPECT_EQ(filled(items, rooms(-1, -1), {0, 0}), Places(10, C));
  EXPECT_EQ(filled(items, rooms(-1, -1), {1, 0}), (Places{H, C, C, C, C, H, C, C, C, C}));
  EXPECT_EQ(filled(items, rooms(-1, -1), {0.5, 0.5}), (Places{C, C, C, C, C, H, H, H, H, H}));
  EXPECT_EQ(filled(items, rooms(-1, -1), {0.4, 0.7}), (Places{C, C, C, H, H, H, H, H, H, H}));
  EXPECT_EQ(filled(items, rooms(-1, 30, true), {0, 1}), (Places{C, H, H, H, F, C, F, F, F, F}));
  EXPECT_EQ(filled(items, rooms(10, -1), {0, 0.5}), (Places{C, H, H, H, H, H, H, H, H, H}))
      << "compute memory holds no more";
}

// Moves as (index of the item, place).
std::vector<std::pair<int, Place>> moved(const std::vector<RestingItem>& items, const Rooms& free,
                                         std::int64_t wanted) {
  std::vector<std::pair<int, Place>> moves;
  for (const HomeMove& move : relief(items, wanted, free))
    moves.emplace_back(move.chunk * kItems + static_cast<int>(move.item), move.to);
  return moves;
}
using Moves = std::vector<std::pair<int, Place>>;

TEST(Homes, ReliefMovesTheLastChunksFirst) {
  auto items = items_of(2, 10);
  EXPECT_EQ(moved(items, rooms(0, -1), 15), (Moves{{9, H}, {8, H}}));
  EXPECT_EQ(moved(items, rooms(0, 10, true), 45), (Moves{{9, H}, {8, F}, {7, F}, {6, F}, {4, F}}));
  items[9].busy = items[4].busy = true;
  EXPECT_EQ(moved(items, rooms(0, -1), 25), (Moves{{8, H}, {7, H}, {6, H}}));
  EXPECT_EQ(movable_bytes(items, rooms(0, 30)), 30) << "the host takes no more";
  EXPECT_TRUE(moved(items, rooms(0, 30), 1000).empty()) << "all or nothing";
}

TEST(Homes, NoTierIsFilledBeyondItsRoom) {
  std::mt19937 random(3);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random()) % n; };
  for (int round = 0; round < 2000; ++round) {
    std::vector<RestingItem> items = items_of(1 + static_cast<int>(below(8)), 0);
    std::int64_t all = 0;
    for (RestingItem& item : items) all += item.bytes = 4096 * below(5);
    const Rooms with = rooms(below(all + 1), below(all + 1), below(2) == 0);
    const std::int64_t missing =
        fill_homes(items, with, {0.25 * static_cast<double>(below(5)), 0.25 * static_cast<double>(below(5))});
    EXPECT_EQ(missing > 0 && with.files, false);
    if (missing > 0) continue;
    std::map<Place, std::int64_t> held;
    for (const RestingItem& item : items) held[item.home] += item.bytes;
    EXPECT_LE(held[C], with.compute_bytes);
    EXPECT_LE(held[H], with.host_bytes);
    EXPECT_EQ(held[F] > 0 && !with.files, false);

    for (RestingItem& item : items) item.busy = below(4) == 0;
    const Rooms free = rooms(0, with.host_bytes - held[H], with.files);
    const std::int64_t wanted = 1 + below(all + 1);
    std::int64_t to_host = 0, freed = 0;
    const auto moves = relief(items, wanted, free);
    for (const HomeMove& move : moves) {
      const RestingItem& item =
          items[static_cast<std::size_t>(move.chunk * kItems) + static_cast<std::size_t>(move.item)];
      EXPECT_LT(freed, wanted) << "nothing moves that need not";
      EXPECT_EQ(item.home, C);
      EXPECT_FALSE(item.busy);
      EXPECT_TRUE(move.to == H || (move.to == F && with.files));
      freed += item.bytes;
      if (move.to == H) to_host += item.bytes;
    }
    EXPECT_EQ(moves.empty(), movable_bytes(items, free) < wanted);
    EXPECT_LE(to_host, free.host_bytes);
  }
}

}  // namespace
}  // namespace gemini
