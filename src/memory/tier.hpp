// One place where model data can lie, with a budget that is never exceeded.
//
// An allocation counts in whole pages. Blocks live as long as the model (shards, state); slots are equal
// pieces taken and given back all the time (gathered chunks, gradients) and kept for reuse. Both may come
// from a source of their own. What is asked of the budget is known before anything moves: fits() looks only
// at what is in use, idle slots are given up when their room is needed.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gemini.h"
#include "memory/page.hpp"
#include "memory/page_source.hpp"

namespace gemini {

class Tier;

// Zero-filled, page-aligned memory of a tier; given back at the end of its life.
class Block {
 public:
  Block() = default;
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  ~Block();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  friend class Tier;
  Block(Tier& tier, PageSource& pages, std::byte* data, std::int64_t bytes) noexcept
      : tier_(&tier), pages_(&pages), data_(data), bytes_(bytes) {}

  Tier* tier_ = nullptr;
  PageSource* pages_ = nullptr;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

class Tier {
 public:
  static constexpr std::int64_t kNoLimit = std::int64_t{1} << 62;  // sums of it and sizes do not overflow

  // limit_bytes -1: as much as the machine gives. option: the key that a user would raise.
  Tier(std::string option, std::int64_t limit_bytes) : option_(std::move(option)), limit_(limit_bytes) {}
  ~Tier();
  Tier(const Tier&) = delete;
  Tier& operator=(const Tier&) = delete;

  [[nodiscard]] bool fits(std::int64_t bytes) const noexcept {
    return limit_ < 0 || bytes <= limit_ - in_use_;
  }
  // The same with this rank's workspaces, which peers do not know.
  [[nodiscard]] bool fits_here(std::int64_t bytes) const noexcept {
    return limit_ < 0 || bytes <= limit_ - in_use_ - guests_;
  }
  // GEMINI_ERR_OUT_OF_MEMORY in words, if it does not fit on all ranks or does not fit here; what: "the
  // shards of this model". returning: what will be given back before.
  void require(std::int64_t bytes, const char* what, std::int64_t returning = 0) const;

  // GEMINI_ERR_OUT_OF_MEMORY also if the machine does not give what the budget allows: whoever allocates
  // agrees on the outcome with the other ranks.
  Block allocate(std::int64_t bytes, const char* what, PageSource& pages = private_pages());
  // In an operation all ranks know what the budget refuses, but a refusal of the machine is of this rank
  // alone: GEMINI_ERR_DEVICE.
  std::byte* take_slot(std::int64_t bytes, const char* what, PageSource& pages = private_pages());
  void give_slot(std::byte* slot, std::int64_t bytes, PageSource& pages = private_pages()) noexcept;

  // The caller's workspaces. They differ over ranks, so they refuse and never steer.
  void add_guest(std::int64_t bytes);
  void remove_guest(std::int64_t bytes) noexcept;

  // Gives back to their sources what is kept for reuse and read by nobody.
  void drop_idle_slots() noexcept;
  // Waits until the condition holds, or throws; for peers that still read what must be given back.
  using WaitUntil = std::function<void(const std::function<bool()>& condition)>;
  void set_wait(WaitUntil wait) { wait_ = std::move(wait); }
  // What the caller says it holds besides. It refuses nothing: idle slots do not stay where it may be.
  void leave_room_for(std::int64_t bytes) noexcept;

  [[nodiscard]] std::int64_t limit() const noexcept { return limit_; }
  [[nodiscard]] std::int64_t in_use() const noexcept { return in_use_; }
  [[nodiscard]] std::int64_t guests() const noexcept { return guests_; }
  // The most that fits().
  [[nodiscard]] std::int64_t room() const noexcept { return limit_ < 0 ? kNoLimit : limit_ - in_use_; }
  [[nodiscard]] std::int64_t held() const noexcept { return held_; }
  // Of it, what no other process sees.
  [[nodiscard]] std::int64_t held_privately() const noexcept { return private_; }
  [[nodiscard]] std::int64_t peak() const noexcept { return peak_; }
  void reset_peak() noexcept { peak_ = held_; }

 private:
  friend class Block;
  std::byte* map(std::int64_t bytes, const char* what, PageSource& pages, gemini_status_t if_refused);
  void unmap(std::byte* data, std::int64_t bytes, PageSource& pages) noexcept;
  void count_held(std::int64_t bytes, const PageSource& pages) noexcept;
  void make_way_for(std::int64_t bytes);
  // Whether idle slots are in the way of this much more.
  [[nodiscard]] bool crowded(std::int64_t more_bytes) const noexcept {
    return limit_ >= 0 && held_ + besides_ + more_bytes > limit_;
  }

  std::string option_;
  std::int64_t limit_;
  std::int64_t in_use_ = 0;  // blocks and taken slots
  std::int64_t guests_ = 0;  // workspaces of the caller
  std::int64_t besides_ = 0;
  std::int64_t held_ = 0;     // in use, guests and idle
  std::int64_t private_ = 0;  // of held
  std::int64_t peak_ = 0;
  WaitUntil wait_;
  std::map<std::pair<PageSource*, std::int64_t>, std::vector<std::byte*>> idle_;  // slots by source and size
};

}  // namespace gemini
