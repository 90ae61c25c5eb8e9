// A timeline as events of Chrome's trace format (JSON), which chrome://tracing and Perfetto show.
#pragma once

#include <string>

#include "base/timeline.hpp"

namespace gemini {

// Events of one rank, each on a line, with commas between them: a list without its brackets.
std::string text_of(const Timeline& timeline, int rank);

}  // namespace gemini
