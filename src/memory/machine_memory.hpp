// What this process and its neighbours may fill together: the machine's memory, or the least that a control
// group above them (a container's, a batch job's) allows.
#pragma once

#include <cstdint>
#include <string>

namespace gemini {

// root: where /proc and /sys are looked for.
std::int64_t machine_memory(const std::string& root = "");

}  // namespace gemini
