// Where model data lies at rest: in compute memory, in host memory or in files.
#pragma once

#include <cstdint>
#include <vector>

namespace gemini {

enum class Home : std::uint8_t { compute, host, file, none };

// In the order in which compute memory is given to them.
enum class DataKind : std::uint8_t { param_shard, gradient_sum, master, state0, state1 };

struct DataItem {
  int chunk = 0;
  DataKind kind = DataKind::param_shard;
  std::int64_t bytes = 0;  // rounded to pages
};

struct HomeRooms {
  std::int64_t compute_bytes = 0;  // for data at rest; -1: no limit
  std::int64_t host_bytes = 0;     // -1: no limit
  bool files = false;              // there is a folder for them
};

struct Homes {
  std::vector<Home> of;            // by item
  std::int64_t missing_bytes = 0;  // of items that nothing takes
};

// As much as possible in compute memory, the rest on the host, the rest of that in files: parameter shards
// first, then gradient sums, masters and states, chunk by chunk. An item that does not fit leaves its place
// to smaller ones after it.
Homes choose_homes(const std::vector<DataItem>& items, const HomeRooms& rooms);

// placement = static: shares, by bytes, that leave compute memory whether or not it has room; whole items of
// the last chunks, so perhaps a little more. What a tier does not hold goes to the next.
struct OffloadShares {
  double params = 0;  // of parameter shards
  double optim = 0;   // of gradient sums, masters and states
};
Homes choose_homes(const std::vector<DataItem>& items, const HomeRooms& rooms, const OffloadShares& shares);

struct HomeMove {
  int item;
  Home to;
  friend bool operator==(const HomeMove& a, const HomeMove& b) { return a.item == b.item && a.to == b.to; }
};

struct Relief {
  std::vector<HomeMove> moves;   // in order
  std::int64_t freed_bytes = 0;  // of compute memory; may be less than wanted
};

// Items that move down until so many bytes of compute memory are free: states first, then masters, gradient
// sums and parameter shards, the last chunks first, none that is busy. free: what is left of host memory, and
// files.
Relief relieve(const std::vector<DataItem>& items, const std::vector<Home>& homes,
               const std::vector<bool>& busy, const HomeRooms& free, std::int64_t wanted_bytes);

}  // namespace gemini
