#include "training/non_model_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace gemini {
namespace {

constexpr std::size_t kAlign = 256;

}  // namespace

NonModelMemory::~NonModelMemory() {
  for (const auto& workspace : workspaces_) std::free(workspace.first);
}

void NonModelMemory::saw(std::int64_t bytes) {
  peak_ = std::max(peak_, bytes);
  period_peak_ = std::max(period_peak_, bytes);
}

std::int64_t NonModelMemory::take_peak() {
  return std::exchange(period_peak_, now());
}

void* NonModelMemory::allocate(std::int64_t bytes, Tier& tier, const std::function<void()>& check) {
  if (bytes < 0) fail(GEMINI_ERR_ARGUMENT, "size_bytes is {}, must be >= 0", bytes);
  // Demand, even if it is refused; but not what can never be had.
  if (tier.limit() < 0 || bytes <= tier.limit()) period_peak_ = std::max(period_peak_, now() + bytes);
  check();
  tier.add_guest(bytes);
  void* pointer = std::aligned_alloc(kAlign, (static_cast<std::size_t>(bytes) / kAlign + 1) * kAlign);
  if (pointer == nullptr) {
    tier.remove_guest(bytes);
    fail(GEMINI_ERR_OUT_OF_MEMORY, "the machine does not give a workspace of {}", text::format_bytes(bytes));
  }
  workspaces_[pointer] = bytes;
  workspace_bytes_ += bytes;
  saw(now());
  return pointer;
}

void NonModelMemory::free(void* pointer, Tier& tier) {
  if (pointer == nullptr) return;
  const auto found = workspaces_.find(pointer);
  if (found == workspaces_.end())
    fail(GEMINI_ERR_ARGUMENT, "ptr = {} is not a workspace of this context", fmt::ptr(pointer));
  workspace_bytes_ -= found->second;
  tier.remove_guest(found->second);
  workspaces_.erase(found);
  std::free(pointer);
}

void NonModelMemory::count_process(std::int64_t budget_bytes) {
  process_grain_ = budget_bytes / 64;
}

void NonModelMemory::sample_process(std::int64_t model_bytes) {
  if (process_grain_ == 0) return;
  const std::int64_t others = process_.resident() - model_bytes;
  const std::int64_t grains = (others + process_grain_ - 1) / process_grain_;
  period_peak_ = std::max(period_peak_, grains * process_grain_);
}

void NonModelMemory::note(std::int64_t bytes, Tier& tier) {
  if (bytes < 0) fail(GEMINI_ERR_ARGUMENT, "non_model_bytes is {}, must be >= 0", bytes);
  noted_ = std::min(bytes, Tier::kNoLimit);  // sums of it do not overflow
  tier.leave_room_for(noted_);
  saw(now());
}

}  // namespace gemini
