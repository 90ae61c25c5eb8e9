/* Everything one run of the example holds. */
#ifndef RUN_H
#define RUN_H

#include <gemini.h>

#include "cli.h"
#include "fashion_mnist.h"
#include "mlp.h"
#include "model.h"
#include "samples.h"

typedef struct {
  const cli_t* cli;
  int rank, ranks;
  dataset_t train, test;
  samples_t samples;
  mlp_t net;       /* this rank's samples and activations; holds no weights */
  uint8_t* labels; /* of the samples in net */
  gemini_context_t ctx;
  model_t model;
  int accumulate; /* micro-batches of a step */
  int64_t steps_per_epoch, steps;
  double peak_lr;
  double loss_share; /* what a sample's loss gradient is multiplied by, loss scale apart */
} run_t;

/* Reads the data, makes the context and the parameters. 0, or -1 on every rank if the data is not there;
 * the reason has been printed. */
int run_create(run_t* run, const cli_t* cli, MPI_Comm comm);
void run_destroy(run_t* run);

/* Puts this rank's part of a micro-batch (counted from 0) into net; returns how many samples that is. */
int run_load_batch(run_t* run, int64_t number);

/* Makes a test sample the i-th in net. */
void run_load_test(run_t* run, int i, int sample);

#endif
