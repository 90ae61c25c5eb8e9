#include "run.h"

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/* Every rank reads; if one cannot, all of them know and none goes on to wait for it. */
static int read_data(run_t* run, MPI_Comm comm) {
  char words[2048] = "another rank could not read the data";
  int bad = fashion_mnist_read(run->cli->data, "train", &run->train, words, sizeof words) != 0 ||
            fashion_mnist_read(run->cli->data, "t10k", &run->test, words, sizeof words) != 0;
  int any_bad = 0;
  MPI_Allreduce(&bad, &any_bad, 1, MPI_INT, MPI_MAX, comm);
  if (!any_bad) return 0;
  fprintf(stderr, "mlp_fashion_mnist: rank %d: %s\n", run->rank, words);
  fashion_mnist_free(&run->train);
  fashion_mnist_free(&run->test);
  return -1;
}

/* "key=value" of the command line */
static void set_option(gemini_options_t options, const char* text) {
  char key[256];
  size_t length = strcspn(text, "=");
  FAIL_UNLESS(length < sizeof key, "an option's key is too long");
  memcpy(key, text, length);
  key[length] = 0;
  CHECK(gemini_options_set(options, key, text + length + 1));
}

static void create_context(run_t* run, MPI_Comm comm) {
  gemini_options_t options;
  CHECK(gemini_options_create(&options));
  if (!run->cli->golden_init) {
    CHECK(gemini_options_set(options, "optimizer", "adamw"));
    CHECK(gemini_options_set(options, "lr", "2e-3"));
    CHECK(gemini_options_set(options, "weight_decay", "0.01"));
  }
  for (int i = 0; i < run->cli->options; ++i) set_option(options, run->cli->option[i]);
  CHECK(gemini_create(comm, options, &run->ctx));
  CHECK(gemini_options_destroy(&options)); /* the context has its copy */
  int32_t on_device = 0;
  CHECK(gemini_on_device(run->ctx, &on_device));
  FAIL_UNLESS(!on_device, "this example computes on the host: -o backend=host");
}

/* An option in force: what was set, or the environment's GEMINI_<KEY>, or the default. */
static void option_in_force(run_t* run, const char* key, char* value, int64_t capacity) {
  CHECK(gemini_get_option(run->ctx, key, value, capacity));
}

/* What the loss gradient of one sample is multiplied by so that the step sees the mean over the batches of
 * all ranks. Micro-batches are summed by the library, hence the division by accumulate. Over ranks it takes
 * the mean (or the sum); ranks may have unequal numbers of samples, so each sample counts ranks / batch. */
static double loss_share(run_t* run) {
  char reduce_op[32];
  option_in_force(run, "reduce_op", reduce_op, sizeof reduce_op);
  double ranks = strcmp(reduce_op, "mean") == 0 ? run->ranks : 1;
  return ranks / ((double)run->cli->batch * run->accumulate);
}

static void plan(run_t* run) {
  char value[64];
  option_in_force(run, "accumulate", value, sizeof value);
  run->accumulate = atoi(value);
  option_in_force(run, "lr", value, sizeof value);
  run->peak_lr = strtod(value, NULL);
  run->loss_share = loss_share(run);
  run->steps_per_epoch = run->train.count / ((int64_t)run->cli->batch * run->accumulate);
  FAIL_UNLESS(run->steps_per_epoch > 0 || run->cli->golden_init, "--batch exceeds the training set");
  if (run->steps_per_epoch == 0) run->steps_per_epoch = 1;
  run->steps = run->cli->steps > 0 ? run->cli->steps : run->cli->epochs * run->steps_per_epoch;
}

/* Threads of BLAS are left to the environment; if it says nothing, a rank computes with one. */
static void choose_threads(void) {
#ifdef HAVE_OPENBLAS_SET_NUM_THREADS
  if (!getenv("OPENBLAS_NUM_THREADS") && !getenv("OMP_NUM_THREADS")) openblas_set_num_threads(1);
#endif
}

int run_create(run_t* run, const cli_t* cli, MPI_Comm comm) {
  memset(run, 0, sizeof *run);
  run->cli = cli;
  MPI_Comm_rank(comm, &run->rank);
  MPI_Comm_size(comm, &run->ranks);
  if (read_data(run, comm) != 0) return -1;
  choose_threads();
  create_context(run, comm);
  plan(run);
  model_create(run->ctx, cli, &run->model);
  int part = (cli->batch + run->ranks - 1) / run->ranks, capacity = part < 256 ? 256 : part;
  run->labels = malloc((size_t)capacity);
  /* Reference trajectories are not to depend on the order in which this machine's BLAS adds. */
  mlp_arithmetic_t arithmetic = cli->golden_init ? MLP_DOUBLE : MLP_FAST;
  int short_of_memory = !run->labels ||
                        mlp_create(&run->net, cli->dtype, arithmetic, cli->layers, cli->widths, capacity) ||
                        samples_create(&run->samples, run->train.count, !cli->golden_init, cli->seed);
  FAIL_UNLESS(!short_of_memory, "no memory for a batch");
  return 0;
}

void run_destroy(run_t* run) {
  CHECK(gemini_destroy(&run->ctx));
  mlp_destroy(&run->net);
  samples_destroy(&run->samples);
  free(run->labels);
  fashion_mnist_free(&run->train);
  fashion_mnist_free(&run->test);
}

static void load(run_t* run, int i, const dataset_t* data, int sample) {
  mlp_set_input(&run->net, i, data->pixels + (size_t)sample * FASHION_MNIST_PIXELS);
  run->labels[i] = data->labels[sample];
}

int run_load_batch(run_t* run, int64_t number) {
  int64_t per_epoch = run->steps_per_epoch * run->accumulate, batch = run->cli->batch;
  int64_t start = run->samples.shuffled ? number % per_epoch * batch : number * batch;
  int first, mine = samples_part(run->cli->batch, run->rank, run->ranks, &first);
  for (int i = 0; i < mine; ++i) {
    int sample = samples_at(&run->samples, number / per_epoch, start + first + i);
    load(run, i, &run->train, sample);
  }
  return mine;
}

void run_load_test(run_t* run, int i, int sample) {
  load(run, i, &run->test, sample);
}
