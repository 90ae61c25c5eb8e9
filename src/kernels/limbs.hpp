// Adding a shifted integer to the limbs of an ExactSum.
#pragma once

#include <Kokkos_Macros.hpp>
#include <cstdint>

namespace gemini::kernels {

constexpr int kTopLimb = 65;  // its 64 bits are never carried out of
constexpr int kNonFiniteLimb = 66;
constexpr int kLimbBits = 32;
constexpr std::uint64_t kLimbMask = 0xffffffffu;

// Splits magnitude * 2^position (in units of 2^-1074) and calls add_to(limb, part) with parts below 2^32;
// only the top limb may get more.
template <class AddTo>
KOKKOS_FORCEINLINE_FUNCTION void spread(std::uint64_t magnitude, int position, const AddTo& add_to) {
  const int limb = position / kLimbBits;
  const int shift = position % kLimbBits;
  const std::uint64_t above = magnitude >> (kLimbBits - shift);
  add_to(limb, static_cast<std::int64_t>((magnitude << shift) & kLimbMask));
  if (limb + 1 == kTopLimb) {
    add_to(limb + 1, static_cast<std::int64_t>(above));
  } else {
    add_to(limb + 1, static_cast<std::int64_t>(above & kLimbMask));
    add_to(limb + 2, static_cast<std::int64_t>(above >> kLimbBits));
  }
}

}  // namespace gemini::kernels
