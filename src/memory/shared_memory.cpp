#include "memory/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "memory/page.hpp"

namespace gemini {

SharedMemory SharedMemory::create(const std::string& name, std::int64_t bytes) {
  Descriptor file(shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
  if (!file)
    fail(errno == EEXIST ? GEMINI_ERR_DUPLICATE : GEMINI_ERR_IO, "cannot create the shared memory {}: {}",
         name, words_of_errno(errno));
  const int error = !may_grow_to(bytes) ? EFBIG : ftruncate(file.get(), bytes) != 0 ? errno : 0;
  if (error != 0) {
    remove(name);
    fail(GEMINI_ERR_IO, "shared memory of {} cannot be had: {}", text::format_bytes(bytes),
         words_of_errno(error));
  }
  try {
    return {std::move(file), name, bytes};
  } catch (...) {
    remove(name);
    throw;
  }
}

SharedMemory SharedMemory::open(const std::string& name, std::int64_t bytes) {
  Descriptor file(shm_open(name.c_str(), O_RDWR, 0600));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0)
    fail(GEMINI_ERR_IO, "cannot open the shared memory {}: {}", name, words_of_errno(errno));
  if (status.st_size != bytes) fail(GEMINI_ERR_IO, "the shared memory {} is another program's", name);
  return {std::move(file), name, bytes};
}

void SharedMemory::remove(const std::string& name) noexcept {
  shm_unlink(name.c_str());
}

SharedMemory::SharedMemory(Descriptor file, const std::string& name, std::int64_t bytes)
    : file_(std::move(file)), bytes_(bytes) {
  void* data = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE, file_.get(), 0);
  if (data == MAP_FAILED)
    fail(GEMINI_ERR_IO, "cannot map the shared memory {}: {}", name, words_of_errno(errno));
  data_ = static_cast<std::byte*>(data);
#ifdef MADV_HUGEPAGE
  madvise(data, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // where the system gives them
#endif
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : file_(std::move(other.file_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(bytes_));
}

bool SharedMemory::reserve(std::int64_t offset, std::int64_t bytes) const noexcept {
  if (bytes == 0) return true;
  if (!may_grow_to(offset + bytes)) return false;
  int error = 0;
  do {
    error = posix_fallocate(file_.get(), offset, bytes);
  } while (error == EINTR);
  return error == 0;
}

void SharedMemory::release(std::int64_t offset, std::int64_t bytes) const noexcept {
  const std::int64_t begin = whole_pages(offset);
  const std::int64_t end = (offset + bytes) / kPage * kPage;
  if (begin < end) fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, end - begin);
}

void SharedMemory::populate(std::int64_t offset, std::int64_t bytes) const noexcept {
  const std::int64_t begin = offset / kPage * kPage;
#ifdef MADV_POPULATE_WRITE
  if (madvise(data_ + begin, static_cast<std::size_t>(offset + bytes - begin), MADV_POPULATE_WRITE) == 0)
    return;
#endif
  for (std::int64_t at = begin; at < offset + bytes; at += kPage)
    static_cast<void>(*static_cast<volatile std::byte*>(data_ + at));
}

std::int64_t free_shared_memory() noexcept {
  struct statvfs space {};
  if (statvfs("/dev/shm", &space) != 0 || space.f_blocks == 0) return -1;
  return static_cast<std::int64_t>(space.f_bavail) * static_cast<std::int64_t>(space.f_frsize);
}

}  // namespace gemini
