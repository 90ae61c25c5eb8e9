// The three places where model data can lie at rest, fastest first.
#pragma once

#include <cstdint>

namespace gemini {

enum class Place : std::uint8_t { compute, host, file };

constexpr const char* name_of(Place place) noexcept {
  constexpr const char* kNames[] = {"compute memory", "host memory", "files"};
  return kNames[static_cast<int>(place)];
}

}  // namespace gemini
