// The arrays that a shard consists of.
#pragma once

#include <cstdint>

namespace gemini {

enum class Item : std::uint8_t {
  param,     // what operations compute with
  grad_sum,  // reduced gradients
  master,    // F32 copy of 16-bit values
  state1,    // of the optimizer
  state2
};
inline constexpr int kItems = 5;

constexpr const char* name_of(Item item) noexcept {
  constexpr const char* kNames[kItems] = {"values", "gradient sum", "master", "state 1", "state 2"};
  return kNames[static_cast<int>(item)];
}

// Sets of them.
using Items = unsigned;
constexpr Items set_of(Item item) noexcept {
  return 1U << static_cast<unsigned>(item);
}
constexpr Items operator|(Item a, Item b) noexcept {
  return set_of(a) | set_of(b);
}
constexpr Items operator|(Items a, Item b) noexcept {
  return a | set_of(b);
}
inline constexpr Items kStates = Item::state1 | Item::state2;
inline constexpr Items kValues = Item::param | Item::master;

}  // namespace gemini
