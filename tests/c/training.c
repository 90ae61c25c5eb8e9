/* Gradients by the protocol of `accumulate`, values in every dtype, the program's own update. */
#include "check.h"

static const char* const kSgd[] = {"optimizer", "sgd", "lr", "0.5", "chunk_elems", "16", NULL};

void test_gradients(void) {
  gemini_context_t ctx = make_context(kSgd);
  gemini_param_t w = add_constant(ctx, "w", GEMINI_F64, 21, 8.0);
  gemini_phase_t phase = GEMINI_INFERENCE;
  double got[21];
  double scale = 0;
  int32_t accumulate = -1;
  void* grad = NULL;
  int i = 0;
  int use = 0;
  OK(gemini_commit(ctx));
  OK(gemini_loss_scale(ctx, &scale));
  CHECK(scale == 1.0);

  /* Used twice: written, then added to. */
  OK(gemini_pre_op(ctx, &w, 1));
  OK(gemini_pre_op(ctx, &w, 1));
  OK(gemini_post_op(ctx, &w, 1));
  OK(gemini_post_op(ctx, &w, 1));
  OK(gemini_set_phase(ctx, GEMINI_BACKWARD));
  for (use = 0; use < 2; ++use) {
    OK(gemini_pre_op(ctx, &w, 1));
    OK(gemini_param_grad(w, &grad, &accumulate));
    CHECK(accumulate == use);
    for (i = 0; i < 21; ++i) ((double*)grad)[i] = (accumulate ? ((double*)grad)[i] : 0.0) + 1.0;
    OK(gemini_post_op(ctx, &w, 1));
  }
  OK(gemini_grad_get(w, GEMINI_F64, got, -1));
  for (i = 0; i < 21; ++i) CHECK(got[i] == 2.0);
  OK(gemini_discard(ctx)); /* as if nothing had been */
  CHECK(gemini_step(ctx, NULL) == GEMINI_ERR_STATE);
  OK(gemini_get_phase(ctx, &phase));
  CHECK(phase == GEMINI_FORWARD);

  /* Complete before the counts say so. */
  OK(gemini_pre_op(ctx, &w, 1));
  OK(gemini_post_op(ctx, &w, 1));
  OK(gemini_pre_op(ctx, &w, 1));
  OK(gemini_post_op(ctx, &w, 1));
  OK(gemini_set_phase(ctx, GEMINI_BACKWARD));
  OK(gemini_pre_op(ctx, &w, 1));
  for (i = 0; i < 21; ++i) ((double*)gemini_grad(w))[i] += 4.0;
  OK(gemini_post_op(ctx, &w, 1));
  OK(gemini_grad_ready(w));
  OK(gemini_progress(ctx));
  OK(gemini_set_lr(ctx, 0.25));
  OK(gemini_step(ctx, NULL));
  OK(gemini_param_get(w, GEMINI_F64, got, -1));
  for (i = 0; i < 21; ++i) CHECK(got[i] == 7.0);
  OK(gemini_destroy(&ctx));
}

void test_values(void) {
  static const gemini_dtype_t types[] = {GEMINI_F64, GEMINI_F32, GEMINI_F16, GEMINI_BF16};
  static const char* const names[] = {"f64", "f32", "f16", "bf16"};
  gemini_context_t ctx = make_context(kSgd);
  gemini_param_t params[4];
  const int root = test_ranks() - 1;
  double wide[19];
  float single[19];
  uint16_t half[19];
  int t = 0;
  int i = 0;
  for (t = 0; t < 4; ++t) params[t] = add_constant(ctx, names[t], types[t], 19, 0.0);
  OK(gemini_commit(ctx));
  for (t = 0; t < 4; ++t) {
    for (i = 0; i < 19; ++i) wide[i] = -1.5 + 0.25 * i; /* exact in each */
    OK(gemini_param_set(params[t], GEMINI_F64, test_rank() == root ? wide : NULL, root));
    for (i = 0; i < 19; ++i) single[i] = 0.0f;
    OK(gemini_param_get(params[t], GEMINI_F32, single, -1));
    for (i = 0; i < 19; ++i) CHECK(single[i] == (float)wide[i]);
    OK(gemini_param_get(params[t], GEMINI_F16, test_rank() == 0 ? half : NULL, 0));
    if (test_rank() == 0) CHECK(half[0] == 0xBE00 && half[6] == 0x0000 && half[10] == 0x3C00);
    OK(gemini_param_get(params[t], GEMINI_BF16, half, -1));
    CHECK(half[0] == 0xBFC0 && half[6] == 0x0000 && half[10] == 0x3F80);
    for (i = 0; i < 19; ++i) half[i] = 0x4000; /* 2 in F16 and in BF16 */
    OK(gemini_param_set(params[t], t % 2 == 0 ? GEMINI_F16 : GEMINI_BF16, half, -1));
    OK(gemini_param_get(params[t], GEMINI_F64, wide, -1));
    for (i = 0; i < 19; ++i) CHECK(wide[i] == 2.0);
  }
  OK(gemini_set_phase(ctx, GEMINI_INFERENCE));
  OK(gemini_pre_op(ctx, params, 4));
  CHECK(((const double*)gemini_data(params[0]))[18] == 2.0);
  CHECK(((const float*)gemini_data(params[1]))[18] == 2.0f);
  CHECK(((const uint16_t*)gemini_data(params[2]))[18] == 0x4000);
  CHECK(((const uint16_t*)gemini_data(params[3]))[18] == 0x4000);
  OK(gemini_post_op(ctx, params, 4));
  OK(gemini_destroy(&ctx));
}

/* w -= factor * g; state1 counts the updates, state2 keeps the last gradient. */
static int own_update(void* user, gemini_param_t param, int64_t first_elem, int64_t count_elems, void* master,
                      const void* grad, void* state1, void* state2) {
  int64_t i = 0;
  (void)param;
  (void)first_elem;
  if (grad == NULL || state1 == NULL || state2 == NULL) return 1;
  for (i = 0; i < count_elems; ++i) {
    ((float*)master)[i] -= *(float*)user * ((const float*)grad)[i];
    ((float*)state1)[i] += 1.0f;
    ((float*)state2)[i] = ((const float*)grad)[i];
  }
  return 0;
}

struct seen {
  gemini_param_t param;
  int64_t elems;
  float state1, state2;
};

static int look_and_double(void* user, gemini_param_t param, int64_t first_elem, int64_t count_elems,
                           void* master, const void* grad, void* state1, void* state2) {
  struct seen* seen = (struct seen*)user;
  int64_t i = 0;
  if (param != seen->param || first_elem < 0 || grad != NULL) return 1;
  seen->elems += count_elems;
  for (i = 0; i < count_elems; ++i) {
    ((float*)master)[i] *= 2.0f;
    if (((float*)state1)[i] != seen->state1 || ((float*)state2)[i] != seen->state2) return 2;
  }
  return 0;
}

void test_custom_update(void) {
  static const char* const custom[] = {
      "optimizer", "custom", "custom_states", "2", "loss_scale", "4", "chunk_elems", "32", NULL};
  gemini_context_t ctx = make_context(custom);
  gemini_param_t w = add_constant(ctx, "w", GEMINI_F32, 45, 10.0);
  struct seen seen = {NULL, 0, 2.0f, 2.0f};
  float factor = 0.5f;
  float got[45];
  int i = 0;
  OK(gemini_commit(ctx));
  OK(gemini_set_update(ctx, own_update, &factor));
  train(ctx, w, 4.0); /* unscaled: 1 */
  OK(gemini_step(ctx, NULL));
  train(ctx, w, 8.0);
  OK(gemini_step(ctx, NULL));
  OK(gemini_param_get(w, GEMINI_F32, got, -1));
  for (i = 0; i < 45; ++i) CHECK(got[i] == 8.5f);
  seen.param = w;
  OK(gemini_shard_visit(ctx, look_and_double, &seen));
  MPI_Allreduce(MPI_IN_PLACE, &seen.elems, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  CHECK(seen.elems == 45); /* each element on one rank */
  OK(gemini_set_phase(ctx, GEMINI_INFERENCE));
  OK(gemini_pre_op(ctx, &w, 1));
  for (i = 0; i < 45; ++i) CHECK(((const float*)gemini_data(w))[i] == 17.0f);
  OK(gemini_post_op(ctx, &w, 1));
  OK(gemini_destroy(&ctx));
}
