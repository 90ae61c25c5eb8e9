// Runs kernels as on processors with fewer instructions than this one.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/launch.hpp"
#include "kernels/runtime.hpp"

namespace gemini::test {

inline void limit_to(std::int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().DeInit();
}

// run() at each level that was compiled and that this processor has; with arrays that are only written left
// in the caches, and not.
template <class Run>
void for_all_levels(Run run) {
  const std::int64_t streamed_from = kernels::streamed_from_bytes;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    limit_to(target);
    for (const bool streams : {false, true}) {
      kernels::streamed_from_bytes = streams ? 0 : streamed_from;
      SCOPED_TRACE(std::string(kernels::instruction_level()) + (streams ? ", streaming" : ""));
      run();
    }
  }
  limit_to(0);
  kernels::streamed_from_bytes = streamed_from;
}

}  // namespace gemini::test
