#include "base/error.hpp"

namespace gemini {

const char* status_name(gemini_status_t status) noexcept {
  switch (status) {
    case GEMINI_SUCCESS: return "GEMINI_SUCCESS";
    case GEMINI_ERR_ARGUMENT: return "GEMINI_ERR_ARGUMENT";
    case GEMINI_ERR_STATE: return "GEMINI_ERR_STATE";
    case GEMINI_ERR_OUT_OF_MEMORY: return "GEMINI_ERR_OUT_OF_MEMORY";
    case GEMINI_ERR_UNSUPPORTED: return "GEMINI_ERR_UNSUPPORTED";
    case GEMINI_ERR_DUPLICATE: return "GEMINI_ERR_DUPLICATE";
    case GEMINI_ERR_MISMATCH: return "GEMINI_ERR_MISMATCH";
    case GEMINI_ERR_IO: return "GEMINI_ERR_IO";
    case GEMINI_ERR_REMOTE: return "GEMINI_ERR_REMOTE";
    case GEMINI_ERR_NOT_FOUND: return "GEMINI_ERR_NOT_FOUND";
    case GEMINI_ERR_INTERNAL: return "GEMINI_ERR_INTERNAL";
    case GEMINI_ERR_MPI: return "GEMINI_ERR_MPI";
    case GEMINI_ERR_DEVICE: return "GEMINI_ERR_DEVICE";
    case GEMINI_ERR_COLLECTIVE: return "GEMINI_ERR_COLLECTIVE";
    case GEMINI_ERR_ORDER: return "GEMINI_ERR_ORDER";
    case GEMINI_ERR_TIMEOUT: return "GEMINI_ERR_TIMEOUT";
    case GEMINI_ERR_REMOTE_FATAL: return "GEMINI_ERR_REMOTE_FATAL";
    case GEMINI_ERR_IO_FATAL: return "GEMINI_ERR_IO_FATAL";
    case GEMINI_ERR_CALLBACK: return "GEMINI_ERR_CALLBACK";
  }
  return "unknown status";
}

}  // namespace gemini
