// A file that belongs to one object of one process: of a name that no other has, locked while it lives, and
// removed at its end. If the process dies the file stays, until the next one of this host in the same
// directory finds that nobody holds its lock.
#pragma once

#include <cstdint>
#include <string>

#include "memory/descriptor.hpp"

namespace gemini {

class OwnFile {
 public:
  // Removes left-over files too. GEMINI_ERR_IO if the directory takes no file.
  explicit OwnFile(std::string directory);
  ~OwnFile();
  OwnFile(const OwnFile&) = delete;
  OwnFile& operator=(const OwnFile&) = delete;

  // Nobody finds the file any more; its room is given back when this object, or the process, ends.
  void remove_name() noexcept;

  // Has the file system give the file that many bytes, so that later writes find room. GEMINI_ERR_IO with
  // the file as it was, if it does not.
  void grow(std::int64_t bytes);

  // Empty again. False: it was not, and is as before.
  bool clear() noexcept;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] int fd() const noexcept { return file_.get(); }
  // Past the page cache, for page-aligned memory, offsets and lengths; fd() where that does not work.
  [[nodiscard]] int direct_fd() const noexcept { return direct_ ? direct_.get() : fd(); }

 private:
  void create();
  void open_direct();
  [[noreturn]] void refuse(std::int64_t bytes, int error) const;

  std::string directory_;
  std::string path_;
  Descriptor file_;
  Descriptor direct_;
  std::int64_t bytes_ = 0;
};

}  // namespace gemini
