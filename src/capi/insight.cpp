// Memory and numbers.
#include <cstdio>

#include "capi/guard.hpp"

using namespace gemini;

gemini_status_t gemini_workspace_alloc(gemini_context_t ctx, int64_t size_bytes, void** ptr) {
  if (ptr != nullptr) *ptr = nullptr;
  return with_context("gemini_workspace_alloc", ctx, [&](Context& context) {
    require_argument(ptr, "ptr");
    *ptr = context.allocate_workspace(size_bytes);
  });
}

gemini_status_t gemini_workspace_free(gemini_context_t ctx, void* ptr) {
  return with_context("gemini_workspace_free", ctx, [&](Context& context) { context.free_workspace(ptr); });
}

gemini_status_t gemini_memory_note(gemini_context_t ctx, int64_t non_model_bytes) {
  return with_context("gemini_memory_note", ctx,
                      [&](Context& context) { context.note_memory(non_model_bytes); });
}

gemini_status_t gemini_stat(gemini_context_t ctx, gemini_stat_t which, int64_t* value) {
  return with_context("gemini_stat", ctx, [&](Context& context) {
    require_argument(value, "value");
    *value = context.stat(which);
  });
}

gemini_status_t gemini_stat_reset(gemini_context_t ctx) {
  return with_context("gemini_stat_reset", ctx, [](Context& context) { context.reset_stats(); });
}

gemini_status_t gemini_report(gemini_context_t ctx, const char* path) {
  return with_all_ranks("gemini_report", ctx, [&](Context& context) {
    const bool writes = context.ranks().topology().rank == 0;
    std::FILE* file = nullptr;
    context.agree(Call::report, "", [&] {
      if (!writes) return;
      file = path == nullptr ? stdout : std::fopen(path, "w");
      if (file == nullptr) fail(GEMINI_ERR_IO, "{}: {}", path, std::strerror(errno));
    });
    const std::string page = context.report();
    bool written = true;
    if (writes) {
      written = std::fputs(page.c_str(), file) >= 0;
      written = (file == stdout ? std::fflush(file) : std::fclose(file)) == 0 && written;
    }
    context.agree(Call::report, "", [&] {
      if (!written)
        fail(GEMINI_ERR_IO, "{}: the report could not be written", path == nullptr ? "stdout" : path);
    });
  });
}

gemini_status_t gemini_trace_write(gemini_context_t ctx, const char* path) {
  return with_all_ranks("gemini_trace_write", ctx, [&](Context& context) { context.write_timeline(path); });
}
