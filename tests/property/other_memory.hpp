// What this rank alone holds beside the model, more and less at random moments.
#pragma once

#include <random>
#include <vector>

#include "gemini.h"

namespace property {

class OtherMemory {
 public:
  // largest_bytes: of one piece; 0: there never is any.
  OtherMemory(gemini_context_t ctx, std::uint64_t seed, std::int64_t largest_bytes);

  void change();
  // All workspaces; false if there are none.
  bool give_back();
  [[nodiscard]] bool ever() const { return largest_bytes_ > 0; }

 private:
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  void free(std::size_t which);

  gemini_context_t ctx_;
  std::mt19937_64 random_;
  std::int64_t largest_bytes_;
  std::vector<void*> workspaces_;
};

}  // namespace property
