// Where model data lies at rest: pure, and equal on all ranks since shards are.
#pragma once

#include <cstdint>
#include <vector>

#include "chunks/shard_item.hpp"
#include "memory/place.hpp"

namespace gemini {

struct RestingItem {
  int chunk;
  Item item;
  std::int64_t bytes;  // as the tier counts them
  Place home = Place::compute;
  bool busy = false;  // may not move now
};

struct Rooms {
  std::int64_t compute_bytes = -1;  // for items at rest; -1: no limit
  std::int64_t host_bytes = -1;
  bool files = false;
};

// `placement = static`: these shares, by bytes and last chunks first, do not lie in compute memory.
struct OffloadShares {
  double param = 0;
  double optimizer = 0;  // of gradient sums, masters and states
};

// Sets each item's home: compute memory first, then host, then files; parameters chunk by chunk, then all
// that belongs to the optimizer chunk by chunk. Returns the bytes that fit nowhere; 0: all is well.
std::int64_t fill_homes(std::vector<RestingItem>& items, const Rooms& rooms);
std::int64_t fill_homes(std::vector<RestingItem>& items, const Rooms& rooms, const OffloadShares& shares);

// The tier below compute memory that takes an item of this size, if one does; it then has less room.
bool put_below(Rooms& rooms, std::int64_t bytes, Place& home);

struct HomeMove {
  int chunk;
  Item item;
  Place to;
};

// What leaves compute memory to free `bytes` there: in the opposite order, nothing busy. rooms:
// what is free below. Moves nothing if that is not enough.
// How much that could be.
std::int64_t movable_bytes(const std::vector<RestingItem>& items, const Rooms& rooms);
std::vector<HomeMove> relief(const std::vector<RestingItem>& items, std::int64_t bytes, const Rooms& rooms);

}  // namespace gemini
