// What options may ask for in this version.
#pragma once

#include "base/options.hpp"

namespace gemini {

// Throws GEMINI_ERR_UNSUPPORTED for what this version does not have.
void check_supported(const Options& options);

}  // namespace gemini
