#include "memory/tier.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "memory/poison.hpp"

namespace gemini {
namespace {

void* pages_of_the_machine(std::int64_t bytes) {
  return mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
              -1, 0);
}

}  // namespace

Block::Block(Block&& other) noexcept
    : tier_(other.tier_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Block& Block::operator=(Block&& other) noexcept {
  std::swap(tier_, other.tier_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Block::~Block() {
  if (data_ == nullptr) return;
  tier_->in_use_ -= bytes_;
  tier_->unmap(data_, bytes_);
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

Block Tier::allocate(std::int64_t bytes, const char* what) {
  const std::int64_t size = whole_pages(bytes);
  if (size == 0) return {};
  std::byte* data = map(size, what, GEMINI_ERR_OUT_OF_MEMORY);
  in_use_ += size;
  return {*this, data, size};
}

std::byte* Tier::take_slot(std::int64_t bytes, const char* what) {
  const std::int64_t size = whole_pages(bytes);
  auto& idle = idle_[size];
  std::byte* slot = nullptr;
  if (idle.empty()) {
    slot = map(size, what, GEMINI_ERR_DEVICE);
  } else {
    slot = idle.back();
    idle.pop_back();
  }
  in_use_ += size;
  unpoison(slot, size);
  return slot;
}

void Tier::give_slot(std::byte* slot, std::int64_t bytes) noexcept {
  const std::int64_t size = whole_pages(bytes);
  poison(slot, size);
  in_use_ -= size;
  if (crowded(0))
    unmap(slot, size);
  else
    idle_[size].push_back(slot);
}

void Tier::add_guest(std::int64_t bytes) {
  if (!fits_here(bytes))
    fail(GEMINI_ERR_OUT_OF_MEMORY,
         "a workspace of {} does not fit: of {} = {} the model uses {} and other workspaces {}",
         text::format_bytes(bytes), option_, text::format_bytes(limit_), text::format_bytes(in_use_),
         text::format_bytes(guests_));
  if (crowded(bytes)) drop_idle_slots();
  guests_ += bytes;
  held_ += bytes;
  peak_ = std::max(peak_, held_);
}

void Tier::leave_room_for(std::int64_t bytes) noexcept {
  besides_ = bytes;
  if (crowded(0)) drop_idle_slots();
}

void Tier::remove_guest(std::int64_t bytes) noexcept {
  guests_ -= bytes;
  held_ -= bytes;
}

std::byte* Tier::map(std::int64_t bytes, const char* what, gemini_status_t if_refused) {
  require(bytes, what);
  if (crowded(bytes)) drop_idle_slots();
  void* data = pages_of_the_machine(bytes);
  if (data == MAP_FAILED) {
    drop_idle_slots();
    data = pages_of_the_machine(bytes);
  }
  if (data == MAP_FAILED)
    fail(if_refused, "{} need {}: the machine does not give them, although the budget {} allows it", what,
         text::format_bytes(bytes), option_);
  held_ += bytes;
  peak_ = std::max(peak_, held_);
  return static_cast<std::byte*>(data);
}

void Tier::unmap(std::byte* data, std::int64_t bytes) noexcept {
  unpoison(data, bytes);
  munmap(data, static_cast<std::size_t>(bytes));
  held_ -= bytes;
}

void Tier::drop_idle_slots() noexcept {
  for (auto& [bytes, slots] : idle_) {
    for (std::byte* slot : slots) unmap(slot, bytes);
    slots.clear();
  }
}

}  // namespace gemini
