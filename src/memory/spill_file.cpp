#include "memory/spill_file.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.hpp"

namespace gemini {

Extent::Extent(Extent&& other) noexcept
    : file_(std::exchange(other.file_, nullptr)),
      offset_(other.offset_),
      bytes_(std::exchange(other.bytes_, 0)),
      fresh_(other.fresh_) {}

Extent& Extent::operator=(Extent&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(offset_, other.offset_);
  std::swap(bytes_, other.bytes_);
  std::swap(fresh_, other.fresh_);
  return *this;
}

Extent::~Extent() {
  if (file_ == nullptr) return;
  const std::lock_guard lock(file_->mutex_);
  file_->in_use_ -= bytes_;
  file_->add_free(offset_, bytes_);
}

void SpillFile::reserve(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (whole_pages(bytes) > held()) grow(whole_pages(bytes) - held());
}

void SpillFile::give_back() noexcept {
  const std::lock_guard lock(mutex_);
  if (in_use_ > 0 || !file_.clear()) return;
  free_.clear();
  touched_ = 0;
}

void SpillFile::grow(std::int64_t more) {
  const std::int64_t end = held();
  file_.grow(end + more);
  add_free(end, more);
}

void SpillFile::add_free(std::int64_t offset, std::int64_t bytes) {
  const auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    free_.erase(next);
  }
  const auto after = free_.lower_bound(offset);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free_.emplace(offset, bytes);
}

Extent SpillFile::allocate(std::int64_t bytes) {
  const std::int64_t size = whole_pages(bytes);
  if (size == 0) return {};
  const std::lock_guard lock(mutex_);
  auto found = free_.begin();
  while (found != free_.end() && found->second < size) ++found;
  if (found == free_.end()) {
    std::int64_t at_end = 0;
    if (!free_.empty() && free_.rbegin()->first + free_.rbegin()->second == held())
      at_end = free_.rbegin()->second;
    grow(size - at_end);
    found = std::prev(free_.end());
  }
  const auto [offset, room] = *found;
  free_.erase(found);
  if (room > size) free_.emplace(offset + size, room - size);
  in_use_ += size;
  const bool fresh = offset >= touched_;
  touched_ = std::max(touched_, offset + size);
  return {*this, offset, size, fresh};
}

int SpillFile::descriptor_for(const void* memory, std::int64_t offset, std::int64_t bytes) const {
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(memory));
  return (address | offset | bytes) % kPage == 0 ? file_.direct_fd() : file_.fd();
}

Transfer SpillFile::read(const Extent& extent, std::int64_t offset, void* to, std::int64_t bytes) {
  ensure(offset >= 0 && bytes >= 0 && bytes <= extent.bytes() - offset, "a read stays in its extent");
  const std::lock_guard lock(mutex_);
  return io_.read(descriptor_for(to, offset, bytes), extent.offset_ + offset, to, bytes);
}

Transfer SpillFile::write(const Extent& extent, std::int64_t offset, const void* from, std::int64_t bytes) {
  ensure(offset >= 0 && bytes >= 0 && bytes <= extent.bytes() - offset, "a write stays in its extent");
  const std::lock_guard lock(mutex_);
  return io_.write(descriptor_for(from, offset, bytes), extent.offset_ + offset, from, bytes);
}

bool SpillFile::done(Transfer transfer) {
  const std::lock_guard lock(mutex_);
  return io_.done(transfer);
}

void SpillFile::wait(Transfer transfer) {
  const std::lock_guard lock(mutex_);
  const int error = io_.wait(transfer);
  if (error != 0) fail(GEMINI_ERR_IO_FATAL, "{}: {}", path(), words_of_errno(error));
}

}  // namespace gemini
