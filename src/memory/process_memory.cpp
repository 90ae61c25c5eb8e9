#include "memory/process_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>

namespace gemini {
namespace {

// Text of a file of /proc from its beginning; each read makes it anew.
template <std::size_t kSize>
bool read_text(const Descriptor& file, std::array<char, kSize>& text) noexcept {
  const ssize_t length = file ? pread(file.get(), text.data(), kSize - 1, 0) : -1;
  text[length < 0 ? 0 : static_cast<std::size_t>(length)] = '\0';
  return length > 0;
}

}  // namespace

ProcessMemory::ProcessMemory() : statm_(open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}

std::int64_t ProcessMemory::resident() const noexcept {
  std::array<char, 256> text;
  long long pages = 0;
  if (!read_text(statm_, text) || std::sscanf(text.data(), "%*s %lld", &pages) != 1) return -1;
  return pages * sysconf(_SC_PAGESIZE);
}

// Not by getrusage, whose peak outlives exec and so may be that of another program.
std::int64_t ProcessMemory::peak() noexcept {
  const Descriptor status(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text;
  long long kibibytes = 0;
  const char* line = read_text(status, text) ? std::strstr(text.data(), "VmHWM:") : nullptr;
  if (line == nullptr || std::sscanf(line, "VmHWM: %lld", &kibibytes) != 1) return -1;
  return kibibytes * 1024;
}

}  // namespace gemini
