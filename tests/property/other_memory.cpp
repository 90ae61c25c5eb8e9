#include "other_memory.hpp"

#include "support/test_params.hpp"

namespace property {

OtherMemory::OtherMemory(gemini_context_t ctx, std::uint64_t seed, std::int64_t largest_bytes)
    : ctx_(ctx), random_(seed), largest_bytes_(largest_bytes) {}

void OtherMemory::change() {
  if (!ever()) return;
  const auto bytes = static_cast<std::int64_t>(draw(static_cast<std::uint64_t>(largest_bytes_)));
  switch (draw(12)) {
    case 0:
    case 1: {
      void* workspace = nullptr;
      const gemini_status_t status = gemini_workspace_alloc(ctx_, bytes, &workspace);
      if (status == GEMINI_ERR_OUT_OF_MEMORY) return;
      gemini_test::check(status, "gemini_workspace_alloc");
      workspaces_.push_back(workspace);
      return;
    }
    case 2: GEMINI_CHECK(gemini_memory_note(ctx_, bytes)); return;
    case 3:
      if (!workspaces_.empty()) free(draw(workspaces_.size()));
      return;
    default: return;
  }
}

void OtherMemory::free(std::size_t which) {
  GEMINI_CHECK(gemini_workspace_free(ctx_, workspaces_[which]));
  workspaces_.erase(workspaces_.begin() + static_cast<std::ptrdiff_t>(which));
}

bool OtherMemory::give_back() {
  if (workspaces_.empty()) return false;
  while (!workspaces_.empty()) free(workspaces_.size() - 1);
  return true;
}

}  // namespace property
