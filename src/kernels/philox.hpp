// Philox4x32-10: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.
#pragma once

#include <Kokkos_Macros.hpp>
#include <cstdint>

namespace gemini::kernels {

struct Philox {
  std::uint32_t word[4];
};

KOKKOS_FORCEINLINE_FUNCTION Philox philox(Philox counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter.word[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter.word[2];
    counter =
        Philox{{static_cast<std::uint32_t>(b >> 32) ^ counter.word[1] ^ key0, static_cast<std::uint32_t>(b),
                static_cast<std::uint32_t>(a >> 32) ^ counter.word[3] ^ key1, static_cast<std::uint32_t>(a)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

}  // namespace gemini::kernels
