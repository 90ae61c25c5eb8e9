/* The network's parameters in libgemini. */
#ifndef MODEL_H
#define MODEL_H

#include <gemini.h>

#include "cli.h"

/* What a parameter of --golden-init starts from; lives until commit has called for the values. */
typedef struct {
  int number; /* of the parameter: weight 0, bias 0, weight 1, ... */
  double scale;
  mlp_dtype_t dtype;
  int64_t elem_bytes;
} golden_init_t;

enum { WEIGHT, BIAS };

typedef struct {
  int layers;
  gemini_param_t param[MLP_MAX_LAYERS][2]; /* WEIGHT and BIAS of each layer */
  golden_init_t golden[MLP_MAX_LAYERS][2];
} model_t;

/* Registers every layer's weight and bias with their initial values and commits. */
void model_create(gemini_context_t ctx, const cli_t* cli, model_t* model);

/* Rank 0 prints for every parameter its sum, sum of magnitudes, first and last element. All ranks call. */
void model_print(const model_t* model, int rank);

#endif
