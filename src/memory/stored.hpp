// Model data at rest: bytes that lie in one of the tiers and can be moved to another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/place.hpp"
#include "memory/spill_file.hpp"
#include "memory/tier.hpp"

namespace gemini {

// The tiers of one context.
struct Tiers {
  Tier& compute;
  Tier& host;
  SpillFile* files = nullptr;  // NULL: there is no spill_dir
  std::int64_t moved_bytes = 0;

  [[nodiscard]] Tier& memory(Place place) const { return place == Place::compute ? compute : host; }
};

class Stored {
 public:
  Stored() = default;
  // Zero-filled. what: for the words of a refusal, "the shards of this model".
  // pages: of compute memory, for the whole life.
  Stored(Tiers& tiers, Place place, std::int64_t bytes, const char* what,
         PageSource& pages = private_pages());

  explicit operator bool() const noexcept { return bytes_ > 0; }
  [[nodiscard]] Place place() const noexcept { return place_; }
  [[nodiscard]] bool in_file() const noexcept { return place_ == Place::file && bytes_ > 0; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  // NULL in a file.
  [[nodiscard]] std::byte* data() const noexcept { return block_.data(); }
  [[nodiscard]] const Extent& extent() const noexcept { return extent_; }

  // Any part, wherever it lies; waits for a file.
  void load(Tiers& tiers, std::int64_t offset, std::int64_t bytes, void* to) const;
  void store(Tiers& tiers, std::int64_t offset, std::int64_t bytes, const void* from);
  void move_to(Tiers& tiers, Place place, const char* what);

 private:
  void take_memory(Tiers& tiers, const char* what);

  std::int64_t bytes_ = 0;
  Place place_ = Place::compute;
  PageSource* pages_ = nullptr;
  Block block_;    // in memory
  Extent extent_;  // in a file
};

}  // namespace gemini
