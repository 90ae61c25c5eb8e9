// What a rank has to do once all have decided it.
#pragma once

#include <new>
#include <utility>

#include "base/error.hpp"

namespace gemini {

// There is no way back: peers are at their part of it. A rank that cannot, though budgets allowed it, failed.
template <class Act>
void must(Act&& act) {
  try {
    std::forward<Act>(act)();
  } catch (const Error& error) {
    if (error.status() < 0) throw;
    fail(error.status() == GEMINI_ERR_IO ? GEMINI_ERR_IO_FATAL : GEMINI_ERR_DEVICE, "{}", error.what());
  } catch (const std::bad_alloc&) {
    fail(GEMINI_ERR_DEVICE, "{}", kNoMemory);
  }
}

}  // namespace gemini
