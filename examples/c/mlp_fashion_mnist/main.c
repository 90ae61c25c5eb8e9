/* Trains a multilayer perceptron on Fashion-MNIST, data-parallel over the ranks of MPI, with libgemini
 * holding parameters, gradients and optimizer state in shards. What to look at: forward() and backward(),
 * which show one operation each, then train(); run.c sets up the context, model.c the parameters. */
#include <gemini.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>

#include "check.h"
#include "progress.h"
#include "run.h"

/* ---- one operation at a time --------------------------------------------------------------------- */

static const void* values_of(gemini_param_t param) {
  void* values = NULL;
  CHECK(gemini_param_data(param, &values));
  return values;
}

static mlp_grad_t gradient_of(gemini_param_t param) {
  mlp_grad_t grad = {NULL, 0};
  int32_t add = 0;
  CHECK(gemini_param_grad(param, &grad.values, &add)); /* add 0: nothing there yet, write every element */
  grad.add = add;
  return grad;
}

/* A layer is an operation: pre_op gathers its parameters from the shards of all ranks; between pre_op and
 * post_op they may be read; post_op gives their memory to the next. */
static void forward(run_t* run, int samples) {
  for (int l = 0; l < run->net.layers; ++l) {
    gemini_param_t* param = run->model.param[l];
    CHECK(gemini_pre_op(run->ctx, param, 2));
    mlp_forward(&run->net, l, samples, values_of(param[WEIGHT]), values_of(param[BIAS]));
    CHECK(gemini_post_op(run->ctx, param, 2));
  }
}

/* In the phase GEMINI_BACKWARD a lease also holds the gradient to write. After post_op, when a chunk's
 * gradients are complete, the library adds them over the ranks while the next layer computes. A rank without
 * samples makes the same calls; gradients it does not ask for count as zero. */
static void backward(run_t* run, int samples) {
  CHECK(gemini_set_phase(run->ctx, GEMINI_BACKWARD));
  for (int l = run->net.layers - 1; l >= 0; --l) {
    gemini_param_t* param = run->model.param[l];
    CHECK(gemini_pre_op(run->ctx, param, 2));
    if (samples > 0)
      mlp_backward(&run->net, l, samples, values_of(param[WEIGHT]), gradient_of(param[WEIGHT]),
                   gradient_of(param[BIAS]));
    CHECK(gemini_post_op(run->ctx, param, 2));
  }
  CHECK(gemini_set_phase(run->ctx, GEMINI_FORWARD));
}

/* ---- training -------------------------------------------------------------------------------------- */

/* Returns the sum of the losses of this rank's samples. */
static double train_micro_batch(run_t* run, int64_t number) {
  double scale;
  CHECK(gemini_loss_scale(run->ctx, &scale)); /* keeps 16-bit gradients from vanishing; 1 otherwise */
  int mine = run_load_batch(run, number);
  forward(run, mine);
  mlp_score_t score = mlp_loss(&run->net, mine, run->labels, scale * run->loss_share);
  backward(run, mine);
  return score.loss;
}

/* Warm-up over a twentieth of the steps, then half a cosine down to nearly nothing. */
static double scheduled_lr(const run_t* run, int64_t step) {
  double warm = (double)run->steps / 20 + 1, at = (double)step;
  if (at < warm) return run->peak_lr * (at + 1) / (warm + 1);
  double done = (at - warm) / ((double)run->steps - warm + 1);
  return run->peak_lr * (0.01 + 0.99 * 0.5 * (1 + cos(3.14159265358979323846 * done)));
}

/* The mean over everything that any rank added to sum. */
static double mean_over_ranks(double sum, double samples) {
  double total = 0;
  MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return total / samples;
}

static void train(run_t* run) {
  const cli_t* cli = run->cli;
  int64_t samples_per_step = (int64_t)cli->batch * run->accumulate;
  progress_t progress;
  progress_start(&progress, cli->progress, run->rank == 0, run->steps, run->steps_per_epoch,
                 samples_per_step);
  double loss = 0; /* of this rank since it was last shown */
  int64_t shown = 0;
  for (int64_t step = 0; step < run->steps; ++step) {
    if (!cli->golden_init) CHECK(gemini_set_lr(run->ctx, scheduled_lr(run, step)));
    for (int m = 0; m < run->accumulate; ++m) loss += train_micro_batch(run, step * run->accumulate + m);
    gemini_step_info_t info = GEMINI_STEP_INFO_INIT;
    CHECK(gemini_step(run->ctx, &info)); /* every rank updates its own shard */
    if (info.skipped && !cli->print_steps) progress_note(&progress, "gradient not finite, step skipped");
    if (!cli->print_steps && !progress_due(&progress, step + 1)) continue;
    double mean = mean_over_ranks(loss, (double)((step + 1 - shown) * samples_per_step));
    if (!cli->print_steps)
      progress_show(&progress, step + 1, mean);
    else if (run->rank == 0)
      printf("step %lld loss %.17g grad_norm %.17g\n", (long long)step, mean, info.grad_norm);
    loss = 0;
    shown = step + 1;
  }
  if (!cli->print_steps) progress_end(&progress);
}

/* The test set in parts over the ranks. In the phase GEMINI_INFERENCE operations leave no trace in training.
 * All ranks make the same number of passes, the last perhaps without samples. */
static double test_accuracy(run_t* run) {
  int first, mine = samples_part(run->test.count, run->rank, run->ranks, &first);
  int most = (run->test.count + run->ranks - 1) / run->ranks;
  int64_t correct = 0, total = 0;
  CHECK(gemini_set_phase(run->ctx, GEMINI_INFERENCE));
  for (int start = 0; start < most; start += run->net.capacity) {
    int count = mine - start < run->net.capacity ? mine - start : run->net.capacity;
    if (count < 0) count = 0;
    for (int i = 0; i < count; ++i) run_load_test(run, i, first + start + i);
    forward(run, count);
    correct += mlp_loss(&run->net, count, run->labels, 0).correct;
  }
  CHECK(gemini_set_phase(run->ctx, GEMINI_FORWARD));
  MPI_Allreduce(&correct, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  return (double)total / run->test.count;
}

static int run_all(const cli_t* cli) {
  run_t run;
  if (run_create(&run, cli, MPI_COMM_WORLD) != 0) return 1;
  train(&run);
  if (cli->print_final) model_print(&run.model, run.rank);
  double accuracy = test_accuracy(&run);
  if (run.rank == 0) printf("test accuracy %.4f\n", accuracy);
  run_destroy(&run);
  return 0;
}

int main(int argc, char** argv) {
  /* With MPI_THREAD_MULTIPLE communication proceeds while this program computes. */
  int provided, rank;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  cli_t cli;
  cli_outcome_t outcome = cli_parse(argc, argv, rank == 0, &cli);
  int status = outcome == CLI_WRONG;
  if (outcome == CLI_RUN) status = run_all(&cli);
  MPI_Finalize();
  return status;
}
