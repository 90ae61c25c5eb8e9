#include "memory/tier.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "memory/poison.hpp"

namespace gemini {

Block::Block(Block&& other) noexcept
    : tier_(other.tier_),
      pages_(other.pages_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Block& Block::operator=(Block&& other) noexcept {
  std::swap(tier_, other.tier_);
  std::swap(pages_, other.pages_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Block::~Block() {
  if (data_ == nullptr) return;
  tier_->in_use_ -= bytes_;
  tier_->unmap(data_, bytes_, *pages_);
}

Tier::~Tier() {
  drop_idle_slots();
}

void Tier::require(std::int64_t bytes, const char* what, std::int64_t returning) const {
  const std::int64_t free = limit_ - in_use_ + returning;
  if (!fits(bytes - returning))
    fail(GEMINI_ERR_OUT_OF_MEMORY,
         "{} need {}, but of {} = {} only {} are free; raise {}, use more ranks, or smaller operations", what,
         text::format_bytes(bytes), option_, text::format_bytes(limit_), text::format_bytes(free), option_);
  if (!fits_here(bytes - returning))
    fail(GEMINI_ERR_OUT_OF_MEMORY,
         "{} need {}, but of {} = {} only {} are free on this rank, whose workspaces take {}; free some and "
         "call again",
         what, text::format_bytes(bytes), option_, text::format_bytes(limit_),
         text::format_bytes(free - guests_), text::format_bytes(guests_));
}

Block Tier::allocate(std::int64_t bytes, const char* what, PageSource& pages) {
  const std::int64_t size = whole_pages(bytes);
  if (size == 0) return {};
  std::byte* data = map(size, what, pages, GEMINI_ERR_OUT_OF_MEMORY);
  in_use_ += size;
  return {*this, pages, data, size};
}

std::byte* Tier::take_slot(std::int64_t bytes, const char* what, PageSource& pages) {
  const std::int64_t size = whole_pages(bytes);
  auto& idle = idle_[{&pages, size}];
  std::byte* slot = nullptr;
  if (idle.empty()) {
    slot = map(size, what, pages, GEMINI_ERR_DEVICE);
  } else {
    slot = idle.back();
    idle.pop_back();
  }
  in_use_ += size;
  if (!pages.is_read_by_others()) unpoison(slot, size);
  return slot;
}

void Tier::give_slot(std::byte* slot, std::int64_t bytes, PageSource& pages) noexcept {
  const std::int64_t size = whole_pages(bytes);
  if (!pages.is_read_by_others()) poison(slot, size);
  in_use_ -= size;
  if (crowded(0) && pages.is_left())
    unmap(slot, size, pages);
  else
    idle_[{&pages, size}].push_back(slot);
}

void Tier::add_guest(std::int64_t bytes) {
  if (!fits_here(bytes))
    fail(GEMINI_ERR_OUT_OF_MEMORY,
         "a workspace of {} does not fit: of {} = {} the model uses {} and other workspaces {}",
         text::format_bytes(bytes), option_, text::format_bytes(limit_), text::format_bytes(in_use_),
         text::format_bytes(guests_));
  make_way_for(bytes);
  guests_ += bytes;
  count_held(bytes, private_pages());
}

void Tier::leave_room_for(std::int64_t bytes) noexcept {
  besides_ = bytes;
  if (crowded(0)) drop_idle_slots();
}

void Tier::remove_guest(std::int64_t bytes) noexcept {
  guests_ -= bytes;
  count_held(-bytes, private_pages());
}

std::byte* Tier::map(std::int64_t bytes, const char* what, PageSource& pages, gemini_status_t if_refused) {
  require(bytes, what);
  make_way_for(bytes);
  std::byte* data = pages.take(bytes);
  if (data == nullptr) {
    drop_idle_slots();
    data = pages.take(bytes);
  }
  if (data == nullptr)
    fail(if_refused, "{} need {}: the machine does not give them from {}, although the budget {} allows it",
         what, text::format_bytes(bytes), pages.name(), option_);
  count_held(bytes, pages);
  return data;
}

void Tier::count_held(std::int64_t bytes, const PageSource& pages) noexcept {
  held_ += bytes;
  if (&pages == &private_pages()) private_ += bytes;
  peak_ = std::max(peak_, held_);
}

void Tier::unmap(std::byte* data, std::int64_t bytes, PageSource& pages) noexcept {
  if (!pages.is_read_by_others()) unpoison(data, bytes);
  pages.give(data, bytes);
  count_held(-bytes, pages);
}

void Tier::make_way_for(std::int64_t bytes) {
  if (!crowded(bytes)) return;
  drop_idle_slots();
  const auto is_kept = [](const auto& of_kind) { return !of_kind.second.empty(); };
  if (!crowded(bytes) || std::none_of(idle_.begin(), idle_.end(), is_kept)) return;
  wait_([&] {
    drop_idle_slots();
    return !crowded(bytes) || std::none_of(idle_.begin(), idle_.end(), is_kept);
  });
}

void Tier::drop_idle_slots() noexcept {
  for (auto& [kind, slots] : idle_) {
    if (!kind.first->is_left()) continue;
    for (std::byte* slot : slots) unmap(slot, kind.second, *kind.first);
    slots.clear();
  }
}

}  // namespace gemini
