// Checkpoints need HDF5, which this build does not have; the answers are agreed like the real ones.
#include "capi/guard.hpp"

using namespace gemini;

namespace {

[[noreturn]] void refuse() {
  fail(GEMINI_ERR_UNSUPPORTED, "checkpoints are not in this version; gemini_param_get reads values");
}

}  // namespace

gemini_status_t gemini_state_register(gemini_context_t ctx, const char*, void*, int64_t, int32_t) {
  return with_context("gemini_state_register", ctx, [](Context&) { refuse(); });
}

gemini_status_t gemini_checkpoint_write(gemini_context_t ctx, const char*, int32_t) {
  return with_all_ranks("gemini_checkpoint_write", ctx,
                        [](Context& context) { context.agree(Call::checkpoint_write, "", refuse); });
}

gemini_status_t gemini_checkpoint_wait(gemini_context_t ctx) {
  return with_all_ranks("gemini_checkpoint_wait", ctx,
                        [](Context& context) { context.agree(Call::checkpoint_wait, "", refuse); });
}

gemini_status_t gemini_checkpoint_read(gemini_context_t ctx, const char*, int32_t) {
  return with_all_ranks("gemini_checkpoint_read", ctx,
                        [](Context& context) { context.agree(Call::checkpoint_read, "", refuse); });
}

gemini_status_t gemini_checkpoint_notes(gemini_context_t ctx, char*, int64_t) {
  return with_context("gemini_checkpoint_notes", ctx, [](Context&) { refuse(); });
}
