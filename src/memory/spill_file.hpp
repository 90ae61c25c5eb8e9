// The third tier: shards and optimizer state in a file, moved to and from memory while the caller goes on.
//
// An extent is a page-aligned part of the file, given back at the end of its life. The file keeps the room of
// extents for reuse and grows when none is left that fits. Memory, offsets and lengths in whole pages go past
// the page cache, which would hold a second copy where memory is scarce; others go through it. Any
// thread may call: gathers read from the communication's worker.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "memory/async_io.hpp"
#include "memory/own_file.hpp"
#include "memory/page.hpp"

namespace gemini {

class SpillFile;

// Its bytes are undefined until they are written, unless it is fresh.
class Extent {
 public:
  Extent() = default;
  Extent(Extent&& other) noexcept;
  Extent& operator=(Extent&& other) noexcept;
  ~Extent();  // its transfers are done by then

  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  // As the file system gave it: zeros.
  [[nodiscard]] bool fresh() const noexcept { return fresh_; }
  explicit operator bool() const noexcept { return file_ != nullptr; }

 private:
  friend class SpillFile;
  Extent(SpillFile& file, std::int64_t offset, std::int64_t bytes, bool fresh) noexcept
      : file_(&file), offset_(offset), bytes_(bytes), fresh_(fresh) {}

  SpillFile* file_ = nullptr;
  std::int64_t offset_ = 0;
  std::int64_t bytes_ = 0;
  bool fresh_ = false;
};

class SpillFile {
 public:
  explicit SpillFile(std::string directory, AsyncIo::Engine engine = AsyncIo::Engine::best)
      : file_(std::move(directory)), io_(engine) {}

  // Nobody finds the file any more; its room is given back when the last user ends.
  void remove_name() noexcept { file_.remove_name(); }

  // Takes room for that many bytes of extents in all, so that none of them can fail later. GEMINI_ERR_IO in
  // words if the file system does not give it; then nothing has changed.
  void reserve(std::int64_t bytes);
  // No extent is in use: the file system has its room again.
  void give_back() noexcept;
  // Of whole pages; first fit. Reserves more if no room is left.
  Extent allocate(std::int64_t bytes);

  // As AsyncIo. GEMINI_ERR_IO_FATAL from wait: what the extent holds is lost.
  Transfer read(const Extent& extent, std::int64_t offset, void* to, std::int64_t bytes);
  Transfer write(const Extent& extent, std::int64_t offset, const void* from, std::int64_t bytes);
  [[nodiscard]] bool done(Transfer transfer);
  void wait(Transfer transfer);

  [[nodiscard]] std::int64_t in_use() const noexcept { return in_use_; }      // in extents
  [[nodiscard]] std::int64_t held() const noexcept { return file_.bytes(); }  // of the file system
  [[nodiscard]] std::int64_t bytes_read() const noexcept { return io_.bytes_read(); }
  [[nodiscard]] std::int64_t bytes_written() const noexcept { return io_.bytes_written(); }
  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }
  [[nodiscard]] const char* engine() const noexcept { return io_.engine(); }

 private:
  friend class Extent;
  [[nodiscard]] int descriptor_for(const void* memory, std::int64_t offset, std::int64_t bytes) const;
  void add_free(std::int64_t offset, std::int64_t bytes);
  void grow(std::int64_t more);

  std::mutex mutex_;
  OwnFile file_;
  std::map<std::int64_t, std::int64_t> free_;  // offset to bytes; neighbours are joined
  std::int64_t in_use_ = 0;
  std::int64_t touched_ = 0;  // the end of all that was ever given out
  AsyncIo io_;                // last: its transfers end before the file
};

}  // namespace gemini
