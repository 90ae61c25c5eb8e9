// Memory and numbers.
#include <cerrno>
#include <cstdio>

#include "capi/guard.hpp"
#include "memory/new_file.hpp"

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
    std::unique_ptr<NewFile> file;  // NULL: stdout
    context.agree(Call::report, "", [&] {
      if (writes && path != nullptr) file = std::make_unique<NewFile>(path);
    });
    const std::string page = context.report();
    context.agree(Call::report, "", [&] {
      if (!writes) return;
      if (file) {
        file->append(page);
        file->keep();
      } else if (std::fputs(page.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
        fail(GEMINI_ERR_IO, "stdout: the report cannot be written: {}", words_of_errno(errno));
      }
    });
  });
}

gemini_status_t gemini_trace_write(gemini_context_t ctx, const char* path) {
  return with_all_ranks("gemini_trace_write", ctx, [&](Context& context) { context.write_timeline(path); });
}
