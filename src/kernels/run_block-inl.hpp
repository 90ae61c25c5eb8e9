// Included once for each level of instructions (dispatch.hpp): the same loops, compiled for each.
#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace gemini::kernels::HWY_NAMESPACE {

// All that the block calls must be forced inline: what is not inlined is compiled for the lowest level.
template <class Block>
HWY_ATTR void run_block(const Block& block, std::int64_t begin, std::int64_t end) {
  block(begin, end);
}

// Inline, and in a namespace of its level: the linker cannot take it for another's.
inline const char* level_name() {
  return HWY_TARGET == HWY_STATIC_TARGET ? "baseline" : hwy::TargetName(HWY_TARGET);
}

}  // namespace gemini::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
