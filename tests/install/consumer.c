/* The smallest user: one parameter, one step of plain SGD. Built against an installed libgemini. */
#include <gemini.h>
#include <stdio.h>

static int failures = 0;

static void check(gemini_status_t status, const char* call) {
  if (status == GEMINI_SUCCESS) return;
  fprintf(stderr, "%s: %s: %s\n", call, gemini_status_string(status), gemini_last_error_message());
  ++failures;
}
#define CHECK(call) check(call, #call)

int main(int argc, char** argv) {
  const int64_t shape[2] = {3, 5};
  double values[15];
  gemini_options_t opts = NULL;
  gemini_context_t ctx = NULL;
  gemini_param_t w = NULL;
  gemini_step_info_t info = GEMINI_STEP_INFO_INIT;
  double* grad;
  int i, rank;

  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  CHECK(gemini_options_create(&opts));
  CHECK(gemini_options_set(opts, "optimizer", "sgd"));
  CHECK(gemini_options_set(opts, "lr", "0.5"));
  CHECK(gemini_create(MPI_COMM_WORLD, opts, &ctx));
  CHECK(gemini_options_destroy(&opts));

  CHECK(gemini_param_register(ctx, "w", GEMINI_F64, 2, shape, 0, &w));
  CHECK(gemini_param_init_fill(w, GEMINI_INIT_CONSTANT, 1.0, 0.0, 0));
  CHECK(gemini_commit(ctx));
  CHECK(gemini_pre_op(ctx, &w, 1));
  CHECK(gemini_post_op(ctx, &w, 1));
  CHECK(gemini_set_phase(ctx, GEMINI_BACKWARD));
  CHECK(gemini_pre_op(ctx, &w, 1));
  grad = (double*)gemini_grad(w);
  for (i = 0; grad != NULL && i < 15; ++i) grad[i] += 1.0;
  CHECK(gemini_post_op(ctx, &w, 1));
  CHECK(gemini_step(ctx, &info));

  for (i = 0; i < 15; ++i) values[i] = 0.0;
  CHECK(gemini_param_get(w, GEMINI_F64, values, -1));
  for (i = 0; i < 15; ++i) failures += values[i] != 0.5;
  CHECK(gemini_destroy(&ctx));
  if (rank == 0) printf("%s: %d failures\n", gemini_build_info(), failures);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
