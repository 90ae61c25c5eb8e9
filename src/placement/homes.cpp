#include "placement/homes.hpp"

#include <algorithm>
#include <tuple>

namespace gemini {
namespace {

bool take(std::int64_t& room, std::int64_t bytes) {
  if (room >= 0 && bytes > room) return false;
  if (room >= 0) room -= bytes;
  return true;
}

std::vector<RestingItem*> in_order(std::vector<RestingItem>& items) {
  std::vector<RestingItem*> order;
  for (RestingItem& item : items) order.push_back(&item);
  // All that a chunk is updated with stays together as far as possible.
  const auto rank = [](const RestingItem* item) {
    return std::tuple(item->item != Item::param, item->chunk, item->item);
  };
  std::sort(order.begin(), order.end(),
            [&](const RestingItem* a, const RestingItem* b) { return rank(a) < rank(b); });
  return order;
}

}  // namespace

bool put_below(Rooms& rooms, std::int64_t bytes, Place& home) {
  if (take(rooms.host_bytes, bytes)) {
    home = Place::host;
    return true;
  }
  if (rooms.files) home = Place::file;
  return rooms.files;
}

std::int64_t fill_homes(std::vector<RestingItem>& items, const Rooms& rooms) {
  return fill_homes(items, rooms, {});
}

std::int64_t fill_homes(std::vector<RestingItem>& items, const Rooms& rooms, const OffloadShares& shares) {
  std::int64_t total[2] = {0, 0};  // of parameters, of the optimizer
  for (const RestingItem& item : items) total[item.item != Item::param] += item.bytes;
  // Chunks in order stay until what stays is the share that may.
  double stays[2] = {(1 - shares.param) * static_cast<double>(total[0]),
                     (1 - shares.optimizer) * static_cast<double>(total[1])};
  Rooms left = rooms;
  std::int64_t missing = 0;
  std::vector<RestingItem*> order = in_order(items);
  for (RestingItem* item : order) {
    double& stay = stays[item->item != Item::param];
    const bool told_off = stay + 0.5 < static_cast<double>(item->bytes);
    if (!told_off && take(left.compute_bytes, item->bytes)) {
      item->home = Place::compute;
      stay -= static_cast<double>(item->bytes);
    } else if (!put_below(left, item->bytes, item->home)) {
      missing += item->bytes;
    }
  }
  return missing;
}

namespace {

// visit(item, to) for everything that could move, in order; false ends it.
template <class Visit>
void for_each_movable(const std::vector<RestingItem>& items, Rooms rooms, Visit&& visit) {
  std::vector<RestingItem> copy = items;
  std::vector<RestingItem*> order = in_order(copy);
  std::reverse(order.begin(), order.end());
  for (const RestingItem* item : order) {
    Place to{};
    if (item->home != Place::compute || item->busy || !put_below(rooms, item->bytes, to)) continue;
    if (!visit(*item, to)) return;
  }
}

}  // namespace

std::int64_t movable_bytes(const std::vector<RestingItem>& items, const Rooms& rooms) {
  std::int64_t bytes = 0;
  for_each_movable(items, rooms, [&](const RestingItem& item, Place) {
    bytes += item.bytes;
    return true;
  });
  return bytes;
}

std::vector<HomeMove> relief(const std::vector<RestingItem>& items, std::int64_t bytes, const Rooms& rooms) {
  std::vector<HomeMove> moves;
  for_each_movable(items, rooms, [&](const RestingItem& item, Place to) {
    moves.push_back({item.chunk, item.item, to});
    bytes -= item.bytes;
    return bytes > 0;
  });
  if (bytes > 0) moves.clear();
  return moves;
}

}  // namespace gemini
