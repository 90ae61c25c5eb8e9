// What options may ask for in this version, and of each other.
#pragma once

#include "base/options.hpp"

namespace gemini {

// Throws GEMINI_ERR_UNSUPPORTED for what this version does not have, GEMINI_ERR_ARGUMENT for values that
// exclude each other.
void check_supported(const Options& options);

}  // namespace gemini
