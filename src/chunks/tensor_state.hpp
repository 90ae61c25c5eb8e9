// The life of a tensor inside its chunk.
#pragma once

#include <array>
#include <cstdint>

namespace gemini {

enum class TensorState : std::uint8_t {
  free,             // in no chunk yet
  compute,          // leased: an operation reads it
  hold,             // idle
  hold_after_bwd,   // idle, its gradient is open and not due
  ready_for_reduce  // idle, its gradient is due and waits for the rest of the chunk
};
inline constexpr int kTensorStates = 5;

constexpr const char* name_of(TensorState state) noexcept {
  constexpr const char* kNames[] = {"FREE", "COMPUTE", "HOLD", "HOLD_AFTER_BWD", "READY_FOR_REDUCE"};
  return kNames[static_cast<int>(state)];
}

// Row: from, column: to. A tensor that stays in its state makes no transition.
constexpr bool transition_allowed(TensorState from, TensorState to) noexcept {
  constexpr std::array<std::array<bool, kTensorStates>, kTensorStates> kAllowed = {{
      // FREE  COMPUTE HOLD   AFTER_BWD READY
      {{false, false, true, false, false}},  // FREE: packed into a chunk
      {{false, false, true, true, true}},    // COMPUTE: the last lease ended
      {{false, true, false, false, false}},  // HOLD: leased
      {{false, true, true, false, true}},    // HOLD_AFTER_BWD: leased; reduced at the end; due
      {{false, true, true, false, false}},   // READY_FOR_REDUCE: leased again; reduced
  }};
  return kAllowed[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
}

}  // namespace gemini
