// What decisions may know of a chunk at the moment: equal on all ranks, whatever their pace.
#pragma once

#include <cstdint>

namespace gemini {

// A copy that must stay where it is (RESIDENT) is shown with a lease.
struct ChunkStatus {
  // arriving: asked for and not waited for yet. Whether it is here by now is no rank's to tell.
  enum class Copy : std::uint8_t { absent, arriving, gathered } copy = Copy::absent;
  bool transient = false;      // gathered for INFERENCE alone: released when its leases end
  bool gradient_open = false;  // a gradient buffer is in compute memory and not being reduced
  int leases = 0;

  [[nodiscard]] bool present() const { return copy != Copy::absent; }
};

}  // namespace gemini
