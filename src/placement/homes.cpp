#include "placement/homes.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace gemini {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

// Both states of a chunk go together.
std::tuple<int, int, int> rank_of(const DataItem& item) {
  const int kind = static_cast<int>(item.kind);
  return {std::min(kind, static_cast<int>(DataKind::state0)), item.chunk, kind};
}

// Items from the one that deserves compute memory most.
std::vector<int> by_rank(const std::vector<DataItem>& items) {
  std::vector<int> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return rank_of(items[at(a)]) < rank_of(items[at(b)]); });
  return order;
}

// What is left of each tier.
class Space {
 public:
  explicit Space(const HomeRooms& rooms)
      : left_{unlimited(rooms.compute_bytes), unlimited(rooms.host_bytes), rooms.files ? unlimited(-1) : 0} {}

  // The first tier from `home` down that holds the bytes, and takes them.
  Home take(Home home, std::int64_t bytes) {
    for (int tier = static_cast<int>(home); tier < static_cast<int>(Home::none); ++tier) {
      if (left_[tier] < bytes) continue;
      left_[tier] -= bytes;
      return static_cast<Home>(tier);
    }
    return Home::none;
  }

 private:
  static std::int64_t unlimited(std::int64_t bytes) {
    return bytes < 0 ? std::numeric_limits<std::int64_t>::max() : bytes;
  }
  std::int64_t left_[3];
};

// from: by item, the highest tier that it may have.
Homes fill(const std::vector<DataItem>& items, const HomeRooms& rooms, const std::vector<Home>& from) {
  Space space(rooms);
  Homes homes{std::vector<Home>(items.size()), 0};
  for (const int i : by_rank(items)) {
    homes.of[at(i)] = space.take(from[at(i)], items[at(i)].bytes);
    if (homes.of[at(i)] == Home::none) homes.missing_bytes += items[at(i)].bytes;
  }
  return homes;
}

// Sends the last chunks' items among those chosen to the host, until the share is reached.
template <class Chosen>
void offload(const std::vector<DataItem>& items, double share, const Chosen& chosen,
             std::vector<Home>& from) {
  std::vector<int> order;
  std::int64_t all = 0;
  for (int i = 0; i < static_cast<int>(items.size()); ++i) {
    if (!chosen(items[at(i)].kind)) continue;
    order.push_back(i);
    all += items[at(i)].bytes;
  }
  const auto later = [&](int a, int b) {
    return std::make_tuple(items[at(a)].chunk, items[at(a)].kind) >
           std::make_tuple(items[at(b)].chunk, items[at(b)].kind);
  };
  std::stable_sort(order.begin(), order.end(), later);
  const double wanted = share * static_cast<double>(all);
  std::int64_t sent = 0;
  for (const int i : order) {
    if (static_cast<double>(sent) >= wanted) return;
    from[at(i)] = Home::host;
    sent += items[at(i)].bytes;
  }
}

}  // namespace

Homes choose_homes(const std::vector<DataItem>& items, const HomeRooms& rooms) {
  return fill(items, rooms, std::vector<Home>(items.size(), Home::compute));
}

Homes choose_homes(const std::vector<DataItem>& items, const HomeRooms& rooms, const OffloadShares& shares) {
  std::vector<Home> from(items.size(), Home::compute);
  const auto is_param = [](DataKind kind) { return kind == DataKind::param_shard; };
  offload(items, shares.params, is_param, from);
  offload(
      items, shares.optim, [&](DataKind kind) { return !is_param(kind); }, from);
  return fill(items, rooms, from);
}

Relief relieve(const std::vector<DataItem>& items, const std::vector<Home>& homes,
               const std::vector<bool>& busy, const HomeRooms& free, std::int64_t wanted_bytes) {
  Space space(free);
  Relief relief;
  std::vector<int> order = by_rank(items);
  std::reverse(order.begin(), order.end());
  for (const int i : order) {
    if (relief.freed_bytes >= wanted_bytes) break;
    if (homes[at(i)] != Home::compute || busy[at(i)] || items[at(i)].bytes == 0) continue;
    const Home to = space.take(Home::host, items[at(i)].bytes);
    if (to == Home::none) continue;
    relief.moves.push_back({i, to});
    relief.freed_bytes += items[at(i)].bytes;
  }
  return relief;
}

}  // namespace gemini
