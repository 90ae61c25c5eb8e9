// What the caller holds beside the model, as far as we know of it.
#pragma once

#include <cstdint>
#include <map>

#include "memory/tier.hpp"

namespace gemini {

class NonModelMemory {
 public:
  ~NonModelMemory();
  void* allocate(std::int64_t bytes, Tier& tier);
  void free(void* pointer, Tier& tier);
  void note(std::int64_t bytes);
  [[nodiscard]] std::int64_t peak() const { return peak_; }
  void reset_peak() { peak_ = workspace_bytes_ + noted_; }

 private:
  std::map<void*, std::int64_t> workspaces_;
  std::int64_t workspace_bytes_ = 0;
  std::int64_t noted_ = 0;
  std::int64_t peak_ = 0;
};

}  // namespace gemini
