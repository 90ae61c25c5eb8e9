// A link of known latency and rate over any transport: to test and to measure how much of it work can hide.
#pragma once

#include <memory>

#include "base/option_table.hpp"
#include "collectives/transport.hpp"

namespace gemini {

// Operations of the result end when those of `real` do, but not before latency + bytes / rate have passed
// since they came to the head of the queue; bytes: what this rank sends.
std::unique_ptr<Transport> make_delayed_transport(std::unique_ptr<Transport> real, LinkDelay delay);

}  // namespace gemini
