/* Registration, queries, aliases and first values. */
#include "check.h"

static const char* const kDefaults[] = {NULL};

void test_registration(void) {
  gemini_context_t ctx = make_context(kDefaults);
  gemini_param_t emb = add_constant(ctx, "emb", GEMINI_F64, 6, 1.5);
  gemini_param_t scalar = NULL;
  gemini_param_t buffer = NULL;
  gemini_param_t found = NULL;
  gemini_param_info_t info = GEMINI_PARAM_INFO_INIT;
  const int64_t shape[3] = {2, 3, 4};
  int64_t counts[24];
  int32_t on_device = 7;
  OK(gemini_param_register(ctx, "scalar", GEMINI_F32, 0, NULL, GEMINI_PARAM_RESIDENT, &scalar));
  OK(gemini_param_init_fill(scalar, GEMINI_INIT_ZEROS, 0, 0, 0));
  OK(gemini_param_register(ctx, "counts", GEMINI_I64, 3, shape, GEMINI_PARAM_IGNORED, &buffer));
  OK(gemini_param_attach(buffer, counts));
  OK(gemini_param_alias(ctx, "head", emb));
  OK(gemini_commit(ctx));

  OK(gemini_param_find(ctx, "head", &found));
  CHECK(found == emb);
  OK(gemini_param_at(ctx, 2, &found));
  CHECK(found == buffer);
  CHECK(gemini_param_at(ctx, 3, &found) == GEMINI_ERR_NOT_FOUND && found == NULL);
  CHECK(gemini_param_find(ctx, "tail", &found) == GEMINI_ERR_NOT_FOUND && found == NULL);
  CHECK(strstr(gemini_last_error_message(), "gemini_param_find: ") == gemini_last_error_message());
  OK(gemini_param_info(buffer, &info));
  CHECK(strcmp(info.name, "counts") == 0 && info.dtype == GEMINI_I64 && info.ndim == 3);
  CHECK(info.shape[0] == 2 && info.shape[1] == 3 && info.shape[2] == 4 && info.elems == 24);
  CHECK(info.flags == GEMINI_PARAM_IGNORED && info.struct_size == (int64_t)sizeof info);
  OK(gemini_param_info(scalar, &info));
  CHECK(info.ndim == 0 && info.elems == 1 && info.flags == GEMINI_PARAM_RESIDENT);

  OK(gemini_pre_op(ctx, &buffer, 1));
  CHECK(gemini_data(buffer) == (void*)counts);
  OK(gemini_post_op(ctx, &buffer, 1));
  OK(gemini_on_device(ctx, &on_device));
  CHECK(on_device == 0);
  OK(gemini_set_stream(ctx, NULL));
  OK(gemini_destroy(&ctx));
}

static int by_index(void* user, int64_t first_elem, int64_t count_elems, void* values) {
  int64_t i = 0;
  for (i = 0; i < count_elems; ++i) ((double*)values)[i] = *(double*)user * (double)(first_elem + i);
  return 0;
}

void test_initial_values(void) {
  static const char* const small_chunks[] = {"chunk_elems", "16", NULL};
  gemini_context_t ctx = make_context(small_chunks);
  gemini_param_t from_data = NULL;
  gemini_param_t from_function = NULL;
  const int64_t elems = 53;
  double factor = 0.5;
  double mine[53];
  double got[53];
  int i = 0;
  for (i = 0; i < 53; ++i) mine[i] = 100.0 * test_rank() + i;
  OK(gemini_param_register(ctx, "data", GEMINI_F64, 1, &elems, 0, &from_data));
  OK(gemini_param_init_data(from_data, mine));
  OK(gemini_param_register(ctx, "function", GEMINI_F64, 1, &elems, 0, &from_function));
  OK(gemini_param_init_function(from_function, by_index, &factor));
  OK(gemini_commit(ctx));
  OK(gemini_param_get(from_data, GEMINI_F64, got, -1));
  for (i = 0; i < 53; ++i) CHECK(got[i] == i); /* rank 0's */
  OK(gemini_param_get(from_function, GEMINI_F64, got, -1));
  for (i = 0; i < 53; ++i) CHECK(got[i] == 0.5 * i);
  OK(gemini_destroy(&ctx));
}
