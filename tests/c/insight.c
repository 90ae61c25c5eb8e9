/* Words, versions, numbers, reports, workspaces. */
#include "check.h"

static void check_words(void) {
  int32_t major = -1;
  int32_t minor = -1;
  int32_t patch = -1;
  OK(gemini_version(&major, &minor, &patch));
  CHECK(major == GEMINI_VERSION_MAJOR && minor == GEMINI_VERSION_MINOR && patch == GEMINI_VERSION_PATCH);
  OK(gemini_version(NULL, NULL, NULL));
  CHECK(strstr(gemini_build_info(), "libgemini") != NULL && strstr(gemini_build_info(), "Kokkos") != NULL);
  CHECK(strchr(gemini_build_info(), '\n') == NULL);
  CHECK(strcmp(gemini_status_string(GEMINI_SUCCESS), "GEMINI_SUCCESS") == 0);
  CHECK(strcmp(gemini_status_string(GEMINI_ERR_CALLBACK), "GEMINI_ERR_CALLBACK") == 0);
  CHECK(strcmp(gemini_status_string((gemini_status_t)-100), "unknown status") == 0);
  CHECK(strcmp(gemini_last_error_message(), "") == 0);
}

static void check_report(gemini_context_t ctx) {
  char line[256];
  int lines = 0;
  int steps_told = 0;
  FILE* file = NULL;
  OK(gemini_report(ctx, "report.txt"));
  if (test_rank() == 0) {
    file = fopen("report.txt", "r");
    CHECK(file != NULL);
    while (fgets(line, (int)sizeof line, file) != NULL) {
      ++lines;
      if (strstr(line, "1 steps, 0 skipped") != NULL) steps_told = 1;
    }
    fclose(file);
    remove("report.txt");
    CHECK(lines > 5 && steps_told);
  }
}

void test_insight(void) {
  static const char* const pairs[] = {"optimizer", "adam", "chunk_elems", "64", "user.note", "mine", NULL};
  gemini_context_t ctx = NULL;
  gemini_param_t w = NULL;
  gemini_topology_t topology = GEMINI_TOPOLOGY_INIT;
  int64_t chunk_elems = 0;
  int64_t value = 0;
  char text[32] = "";
  void* workspace = NULL;
  int which = 0;
  check_words();
  ctx = make_context(pairs);
  w = add_constant(ctx, "w", GEMINI_F32, 64, 1.0);
  OK(gemini_commit(ctx));
  OK(gemini_get_option(ctx, "user.note", text, (int64_t)sizeof text));
  CHECK(strcmp(text, "mine") == 0);
  OK(gemini_set_option(ctx, "user.note", "yours"));
  OK(gemini_get_option(ctx, "user.note", text, (int64_t)sizeof text));
  CHECK(strcmp(text, "yours") == 0);
  OK(gemini_topology(ctx, &topology));
  CHECK(topology.rank == test_rank() && topology.ranks == test_ranks() && topology.device == -1);

  for (which = GEMINI_STAT_DEVICE_BYTES; which <= GEMINI_STAT_IN_FLIGHT; ++which) {
    value = -1;
    OK(gemini_stat(ctx, (gemini_stat_t)which, &value));
    CHECK(value >= 0);
  }
  OK(gemini_stat(ctx, GEMINI_STAT_CHUNK_ELEMS, &chunk_elems));
  CHECK(chunk_elems >= 64 && chunk_elems % test_ranks() == 0);
  OK(gemini_stat(ctx, GEMINI_STAT_PARAM_BYTES, &value));
  CHECK(value == chunk_elems / test_ranks() * 4);
  OK(gemini_stat(ctx, GEMINI_STAT_OPTIMIZER_BYTES, &value));
  CHECK(value == chunk_elems / test_ranks() * 8);
  train(ctx, w, 1.0);
  OK(gemini_step(ctx, NULL));
  OK(gemini_stat(ctx, GEMINI_STAT_STEPS, &value));
  CHECK(value == 1);
  check_report(ctx);
  OK(gemini_stat_reset(ctx));
  OK(gemini_stat(ctx, GEMINI_STAT_STEPS, &value));
  CHECK(value == 0);
  OK(gemini_stat(ctx, GEMINI_STAT_GATHERS, &value));
  CHECK(value == 0);

  OK(gemini_workspace_alloc(ctx, 1000, &workspace));
  memset(workspace, 1, 1000);
  OK(gemini_memory_note(ctx, 24));
  OK(gemini_stat(ctx, GEMINI_STAT_NON_MODEL_PEAK_BYTES, &value));
  CHECK(value == 1024);
  OK(gemini_workspace_free(ctx, workspace));
  OK(gemini_workspace_free(ctx, NULL));
  OK(gemini_workspace_alloc(ctx, 0, &workspace)); /* ends with the context */
  OK(gemini_destroy(&ctx));
}
