#include "memory/stored.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace gemini {
namespace {

void write_zeros(SpillFile& files, const Extent& extent) {
  const std::vector<std::byte> zeros(std::size_t{1} << 18);
  const auto piece = static_cast<std::int64_t>(zeros.size());
  for (std::int64_t done = 0; done < extent.bytes(); done += piece)
    files.wait(files.write(extent, done, zeros.data(), std::min(piece, extent.bytes() - done)));
}

}  // namespace

Stored::Stored(Tiers& tiers, Place place, std::int64_t bytes, const char* what, PageSource& pages)
    : bytes_(bytes), place_(place), pages_(&pages) {
  if (bytes == 0) return;
  if (place != Place::file) {
    take_memory(tiers, what);
    return;
  }
  ensure(tiers.files != nullptr, "files are used where there is a spill_dir");
  extent_ = tiers.files->allocate(whole_pages(bytes));
  if (!extent_.fresh()) write_zeros(*tiers.files, extent_);
}

void Stored::take_memory(Tiers& tiers, const char* what) {
  PageSource& pages = place_ == Place::compute ? *pages_ : private_pages();
  block_ = tiers.memory(place_).allocate(bytes_, what, pages);
}

void Stored::load(Tiers& tiers, std::int64_t offset, std::int64_t bytes, void* to) const {
  if (in_file())
    tiers.files->wait(tiers.files->read(extent_, offset, to, bytes));
  else
    std::memcpy(to, data() + offset, static_cast<std::size_t>(bytes));
}

void Stored::store(Tiers& tiers, std::int64_t offset, std::int64_t bytes, const void* from) {
  if (in_file())
    tiers.files->wait(tiers.files->write(extent_, offset, from, bytes));
  else
    std::memcpy(data() + offset, from, static_cast<std::size_t>(bytes));
}

void Stored::move_to(Tiers& tiers, Place place, const char* what) {
  if (place == place_ || bytes_ == 0) return;
  Stored there;
  there.bytes_ = bytes_;
  there.place_ = place;
  there.pages_ = pages_;
  if (place == Place::file) {
    there.extent_ = tiers.files->allocate(whole_pages(bytes_));
    there.store(tiers, 0, bytes_, data());
  } else {
    there.take_memory(tiers, what);
    load(tiers, 0, bytes_, there.data());
  }
  tiers.moved_bytes += bytes_;
  *this = std::move(there);
}

}  // namespace gemini
