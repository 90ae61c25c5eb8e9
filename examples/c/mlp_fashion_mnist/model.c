#include "model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "narrow.h"

static gemini_dtype_t library_dtype(mlp_dtype_t dtype) {
  switch (dtype) {
    case MLP_F64: return GEMINI_F64;
    case MLP_F32: return GEMINI_F32;
    case MLP_BF16: return GEMINI_BF16;
    default: return GEMINI_F16;
  }
}

static int64_t elem_bytes(mlp_dtype_t dtype) {
  return dtype == MLP_F64 ? 8 : dtype == MLP_F32 ? 4 : 2;
}

/* A gemini_init_fn: the library asks each rank for the range it owns, so no rank ever forms the whole. */
static int golden_values(void* user, int64_t first_elem, int64_t count_elems, void* values) {
  const golden_init_t* init = user;
  for (int64_t i = 0; i < count_elems; ++i) {
    uint32_t hash = (uint32_t)((uint64_t)(first_elem + i + 1 + init->number * INT64_C(7919)) * 2654435761u);
    double value = init->scale * (2 * (hash * 0x1p-32) - 1);
    char* at = (char*)values + i * init->elem_bytes;
    narrow_write(init->dtype, at, 0, 1, &value, 1);
  }
  return 0;
}

static void initialise(model_t* model, const cli_t* cli, int l, int which) {
  gemini_param_t param = model->param[l][which];
  if (cli->golden_init) {
    golden_init_t* golden = &model->golden[l][which];
    *golden =
        (golden_init_t){2 * l + which, 1 / sqrt((double)cli->widths[l]), cli->dtype, elem_bytes(cli->dtype)};
    CHECK(gemini_param_init_function(param, golden_values, golden));
  } else if (which == WEIGHT) {
    CHECK(gemini_param_init_fill(param, GEMINI_INIT_KAIMING_NORMAL, sqrt(2.0), 0, cli->seed));
  } else {
    CHECK(gemini_param_init_fill(param, GEMINI_INIT_ZEROS, 0, 0, 0));
  }
}

void model_create(gemini_context_t ctx, const cli_t* cli, model_t* model) {
  model->layers = cli->layers;
  for (int l = 0; l < cli->layers; ++l) {
    static const char* const names[] = {"weight", "bias"};
    const int64_t shape[] = {cli->widths[l + 1], cli->widths[l]};
    for (int which = WEIGHT; which <= BIAS; ++which) {
      char name[32];
      snprintf(name, sizeof name, "layer%d.%s", l, names[which]);
      CHECK(gemini_param_register(ctx, name, library_dtype(cli->dtype), which == WEIGHT ? 2 : 1, shape, 0,
                                  &model->param[l][which]));
      initialise(model, cli, l, which);
    }
  }
  CHECK(gemini_commit(ctx)); /* from here on this rank holds its shard of everything */
}

static void print_sums(int number, const double* values, int64_t count) {
  double sum = 0, magnitudes = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += values[i];
    magnitudes += fabs(values[i]);
  }
  printf("param %d sum %.17g abs %.17g first %.17g last %.17g\n", number, sum, magnitudes, values[0],
         values[count - 1]);
}

void model_print(const model_t* model, int rank) {
  for (int k = 0; k < 2 * model->layers; ++k) {
    gemini_param_t param = model->param[k / 2][k % 2];
    gemini_param_info_t info = GEMINI_PARAM_INFO_INIT;
    CHECK(gemini_param_info(param, &info));
    double* values = rank == 0 ? malloc((size_t)info.elems * sizeof *values) : NULL;
    FAIL_UNLESS(rank != 0 || values, "no memory to read a parameter");
    CHECK(gemini_param_get(param, GEMINI_F64, values, 0)); /* rank 0 alone receives */
    if (rank == 0) print_sums(k, values, info.elems);
    free(values);
  }
}
