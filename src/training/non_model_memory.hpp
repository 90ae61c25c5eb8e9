// What the caller holds beside the model, as far as we know of it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "memory/process_memory.hpp"
#include "memory/tier.hpp"

namespace gemini {

class NonModelMemory {
 public:
  ~NonModelMemory();
  // The process's own memory counts too, in steps of a part of this budget, so that small changes change no
  // plan. For budgets that are the machine's memory.
  void count_process(std::int64_t budget_bytes);
  // model_bytes: of the process that the model takes.
  void sample_process(std::int64_t model_bytes);
  // check throws what else speaks against it.
  void* allocate(std::int64_t bytes, Tier& tier, const std::function<void()>& check);
  void free(void* pointer, Tier& tier);
  void note(std::int64_t bytes, Tier& tier);
  [[nodiscard]] std::int64_t now() const { return workspace_bytes_ + noted_; }
  [[nodiscard]] std::int64_t peak() const { return peak_; }
  // The most since the last call, refused workspaces included: they are demand of the next iteration.
  std::int64_t take_peak();
  void reset_peak() { peak_ = now(); }

 private:
  void saw(std::int64_t bytes);

  std::map<void*, std::int64_t> workspaces_;
  std::int64_t workspace_bytes_ = 0;
  std::int64_t noted_ = 0;
  std::int64_t peak_ = 0;
  std::int64_t period_peak_ = 0;
  ProcessMemory process_;
  std::int64_t process_grain_ = 0;  // bytes; 0: not counted
};

}  // namespace gemini
