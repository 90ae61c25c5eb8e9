/* The C API from a plain C99 program, under mpiexec. */
#include "check.h"

int test_rank(void) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int test_ranks(void) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

gemini_context_t make_context(const char* const* pairs) {
  gemini_options_t opts = NULL;
  gemini_context_t ctx = NULL;
  OK(gemini_options_create(&opts));
  for (; *pairs != NULL; pairs += 2) OK(gemini_options_set(opts, pairs[0], pairs[1]));
  OK(gemini_create(MPI_COMM_WORLD, opts, &ctx));
  OK(gemini_options_destroy(&opts));
  CHECK(opts == NULL && ctx != NULL);
  return ctx;
}

gemini_param_t add_constant(gemini_context_t ctx, const char* name, gemini_dtype_t dtype, int64_t elems,
                            double value) {
  gemini_param_t param = NULL;
  OK(gemini_param_register(ctx, name, dtype, 1, &elems, 0, &param));
  OK(gemini_param_init_fill(param, GEMINI_INIT_CONSTANT, value, 0, 0));
  return param;
}

void train(gemini_context_t ctx, gemini_param_t param, double gradient) {
  gemini_param_info_t info = GEMINI_PARAM_INFO_INIT;
  int64_t i = 0;
  void* grad = NULL;
  OK(gemini_param_info(param, &info));
  OK(gemini_set_phase(ctx, GEMINI_FORWARD));
  OK(gemini_pre_op(ctx, &param, 1));
  OK(gemini_post_op(ctx, &param, 1));
  OK(gemini_set_phase(ctx, GEMINI_BACKWARD));
  OK(gemini_pre_op(ctx, &param, 1));
  grad = gemini_grad(param);
  CHECK(grad != NULL);
  for (i = 0; i < info.elems; ++i) {
    if (info.dtype == GEMINI_F64) ((double*)grad)[i] += gradient;
    if (info.dtype == GEMINI_F32) ((float*)grad)[i] += (float)gradient;
  }
  OK(gemini_post_op(ctx, &param, 1));
}

/* The example at the head of gemini.h. */
void test_story(void) {
  const int64_t shape[2] = {5, 7};
  gemini_context_t ctx = NULL;
  gemini_param_t w = NULL;
  gemini_step_info_t info = GEMINI_STEP_INFO_INIT;
  float before[35];
  float after[35];
  int step = 0;
  int i = 0;
  OK(gemini_create(MPI_COMM_WORLD, NULL, &ctx));
  OK(gemini_param_register(ctx, "w", GEMINI_F32, 2, shape, 0, &w));
  OK(gemini_param_init_fill(w, GEMINI_INIT_KAIMING_NORMAL, 1.0, 0.0, 7));
  OK(gemini_commit(ctx));
  OK(gemini_param_get(w, GEMINI_F32, before, -1));
  for (step = 1; step <= 3; ++step) {
    OK(gemini_pre_op(ctx, &w, 1));
    CHECK(step > 1 || ((const float*)gemini_data(w))[34] == before[34]);
    OK(gemini_post_op(ctx, &w, 1));
    OK(gemini_set_phase(ctx, GEMINI_BACKWARD));
    OK(gemini_pre_op(ctx, &w, 1));
    for (i = 0; i < 35; ++i) ((float*)gemini_grad(w))[i] += 1.0f;
    OK(gemini_post_op(ctx, &w, 1));
    OK(gemini_step(ctx, &info));
    CHECK(info.step == step && info.skipped == 0 && info.params_updated == 1);
    CHECK(info.lr == 1e-3 && info.loss_scale == 1.0);
    NEAR(sqrt(35.0), info.grad_norm, 1e-12);
  }
  OK(gemini_param_get(w, GEMINI_F32, after, -1));
  for (i = 0; i < 35; ++i) NEAR(before[i] - 0.003f, after[i], 1e-6);
  OK(gemini_destroy(&ctx));
  CHECK(ctx == NULL);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  test_story();
  test_registration();
  test_initial_values();
  test_gradients();
  test_values();
  test_custom_update();
  test_insight();
  MPI_Finalize();
  return 0;
}
