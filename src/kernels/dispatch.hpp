// Chooses the instructions that a block of work is compiled for, by what the processor has: the program is
// built for any x86-64, the loops are there for AVX2 and AVX-512 too. Compiled code differs in speed alone:
// vectors do the same IEEE operations per element.
#pragma once

#include <cstddef>
#include <cstdint>

// Levels between the baseline and AVX2, and above AVX-512 as of 2017, bring these loops nothing.
#if !defined(HWY_DISABLED_TARGETS) && defined(__x86_64__)
#define HWY_DISABLED_TARGETS ((HWY_AVX3 - 1) | HWY_SSE4 | HWY_SSSE3)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/run_block-inl.hpp"
#include <hwy/foreach_target.h>

#include "kernels/run_block-inl.hpp"

namespace gemini::kernels {

// Of the levels compiled here, by falling speed. Until a program limits them, the processor decides.
inline std::size_t level_index() {
  hwy::ChosenTarget& chosen = hwy::GetChosenTarget();
  if (!chosen.IsInitialized()) chosen.Update(hwy::SupportedTargets());
  return chosen.GetIndex();
}

template <class Block>
using RunBlock = void (*)(const Block&, std::int64_t begin, std::int64_t end);

template <class Block>
RunBlock<Block> best_for_this_processor() {
  static constexpr RunBlock<Block> kOfLevel[] = {HWY_CHOOSE_FALLBACK(run_block<Block>),
                                                 HWY_CHOOSE_TARGET_LIST(run_block<Block>),
                                                 HWY_CHOOSE_FALLBACK(run_block<Block>)};
  return kOfLevel[level_index()];
}

}  // namespace gemini::kernels
