// What the kernel says this process holds, all libraries and the program together.
#pragma once

#include <cstdint>

#include "memory/descriptor.hpp"

namespace gemini {

class ProcessMemory {
 public:
  ProcessMemory();

  // Bytes in physical memory now but for what is shared with other processes; -1 where the kernel does not
  // say. One system call, but some kernels count a few pages per core late.
  [[nodiscard]] std::int64_t resident() const noexcept;
  // The most since the process began
  [[nodiscard]] static std::int64_t peak() noexcept;

 private:
  Descriptor status_;
};

}  // namespace gemini
