// Reads and writes of a file past the page cache, with nothing computed between them: as many bytes as an
// optimizer step, in pieces as large, with as many under way.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace gemini_bench {

struct DiskBytes {
  std::int64_t read = 0, written = 0;
};

// What this process read from and wrote to disks until now, as the kernel counts.
DiskBytes disk_bytes();

class DiskStream {
 public:
  // A window: 1 piece is read, or 3 are read and 2 written. One window is read and one written while the one
  // between would be worked on.
  DiskStream(const std::string& directory, const DiskBytes& bytes, std::int64_t piece_bytes);
  ~DiskStream();
  DiskStream(const DiskStream&) = delete;
  DiskStream& operator=(const DiskStream&) = delete;

  void run();
  [[nodiscard]] const char* engine() const;
  [[nodiscard]] bool direct() const;  // false: this file system does not allow it

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace gemini_bench
