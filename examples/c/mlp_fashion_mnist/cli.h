/* The command line of the example. */
#ifndef CLI_H
#define CLI_H

#include <stdint.h>

#include "mlp.h"

enum { CLI_MAX_OPTIONS = 64 };

typedef enum { PROGRESS_AUTO, PROGRESS_LIVE, PROGRESS_LINES } progress_mode_t;

typedef struct {
  const char* data; /* folder with the four files of Fashion-MNIST */
  int layers;       /* weight layers: one less than there are widths */
  int widths[MLP_MAX_LAYERS + 1];
  int batch;     /* samples of a micro-batch over all ranks */
  int64_t steps; /* 0: given by epochs */
  int64_t epochs;
  mlp_dtype_t dtype;
  uint64_t seed;
  int golden_init, print_steps, print_final;
  progress_mode_t progress;
  int options; /* of the library, "key=value" */
  const char* option[CLI_MAX_OPTIONS];
} cli_t;

typedef enum { CLI_RUN, CLI_DONE, CLI_WRONG } cli_outcome_t;

/* Reads the command line; speaks (help, errors) only if talk is nonzero. */
cli_outcome_t cli_parse(int argc, char** argv, int talk, cli_t* cli);

#endif
