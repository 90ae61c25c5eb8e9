#include "memory/process_memory.hpp"

#include <fcntl.h>

#include <algorithm>
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

// Of a line "Name:  123 kB"; -1: there is none.
std::int64_t bytes_of(const char* text, const char* name) noexcept {
  const char* line = std::strstr(text, name);
  long long kibibytes = 0;
  return line != nullptr && std::sscanf(line + std::strlen(name), " %lld", &kibibytes) == 1 ? kibibytes * 1024
                                                                                            : -1;
}

}  // namespace

ProcessMemory::ProcessMemory() : status_(open("/proc/self/status", O_RDONLY | O_CLOEXEC)) {}

std::int64_t ProcessMemory::resident() const noexcept {
  std::array<char, 4096> text;
  if (!read_text(status_, text)) return -1;
  const std::int64_t all = bytes_of(text.data(), "VmRSS:");
  return all < 0 ? -1 : all - std::max<std::int64_t>(bytes_of(text.data(), "RssShmem:"), 0);
}

// Not by getrusage, whose peak outlives exec and so may be that of another program.
std::int64_t ProcessMemory::peak() noexcept {
  const Descriptor status(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text;
  return read_text(status, text) ? bytes_of(text.data(), "VmHWM:") : -1;
}

}  // namespace gemini
