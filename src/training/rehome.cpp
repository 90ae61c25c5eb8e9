#include "training/rehome.hpp"

#include <algorithm>
#include <vector>

#include "training/model_plan.hpp"

namespace gemini {

std::int64_t room_at_rest(const Forecast& forecast, int events) {
  std::int64_t room = Budget::kUnlimited;
  for (int e = 0; e < events; ++e)
    room = std::min(room, forecast.soft(e) - forecast.gradients(e) - forecast.leased(e));
  return room;
}

void rehome(ChunkStore& store, Residency& residency, std::int64_t room_bytes, std::int64_t fixed_bytes) {
  std::vector<RestingItem> items = residency.movable();
  Rooms rooms = residency.rooms_below();
  for (const RestingItem& item : items)
    if (item.home == Place::host && rooms.host_bytes >= 0) rooms.host_bytes += item.bytes;
  const std::int64_t limit = store.compute().limit();
  const std::int64_t most = (limit < 0 ? Budget::kUnlimited : limit) - fixed_bytes;
  if (fill_adapting(items, rooms, room_bytes - fixed_bytes, most) > 0) return;

  // What goes down makes room for what comes up: beside the workspaces of a rank there is room for no more
  // than was planned. Each move frees the room of another; what finds none stays where it is, which is as
  // good.
  const auto move_all = [&](bool down) {
    bool moved = false;
    for (const RestingItem& item : items) {
      Chunk& chunk = store[item.chunk];
      const Place place = chunk.item(item.item).place();
      if (place == item.home || (item.home > place) != down) continue;
      if (item.home != Place::file && !store.tiers().memory(item.home).fits(item.bytes)) continue;
      residency.move(chunk, item.item, item.home);
      moved = true;
    }
    return moved;
  };
  while (move_all(true) || move_all(false)) {
  }
}

}  // namespace gemini
