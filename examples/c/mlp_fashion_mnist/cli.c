#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fashion_mnist.h"

static const char help[] =
    "Trains a multilayer perceptron (ReLU, softmax cross entropy) on Fashion-MNIST over the ranks of MPI,\n"
    "with parameters, gradients and optimizer state sharded by libgemini.\n"
    "\n"
    "  mpirun -n 2 mlp_fashion_mnist [options]\n"
    "\n"
    "  --data DIR         folder of the four *-ubyte.gz files\n"
    "                     (default " FASHION_MNIST_DIR
    ")\n"
    "  --layers A,B,..    widths from the 784 pixels to the 10 classes (default 784,256,128,10)\n"
    "  --batch N          samples of a micro-batch, over all ranks (default 128)\n"
    "  --epochs N         passes over the training set (default 5); what is left of an epoch when\n"
    "                     no whole batch fits any more is dropped\n"
    "  --steps N          updates, instead of --epochs\n"
    "  --dtype T          f64, f32, bf16 or f16: type of the parameters (default f32)\n"
    "  --seed N           of initial values and shuffling (default 1)\n"
    "  -o KEY=VALUE       an option of libgemini, over what the example sets; may be repeated\n"
    "                     (example: optimizer=adamw lr=2e-3 weight_decay=0.01, lr warms up and decays)\n"
    "  --progress HOW     live (one line in place), lines, or auto (default: live on a terminal)\n"
    "  --print-steps      loss and gradient norm of every step, 17 digits, instead of progress\n"
    "  --print-final      sums over the trained parameters, 17 digits\n"
    "  --golden-init      for comparisons with reference trajectories: initial values by formula, samples\n"
    "                     in file order (starting over at the end), no options or schedule of the example\n"
    "  --help             this text\n";

static int parse_count(const char* text, int64_t least, int64_t most, int64_t* value) {
  char* end = NULL;
  errno = 0;
  long long parsed = strtoll(text, &end, 10);
  if (end == text || *end || errno || parsed < least || parsed > most) return -1;
  *value = parsed;
  return 0;
}

static int parse_layers(const char* text, cli_t* cli) {
  int count = 0;
  for (;;) {
    char* end = NULL;
    long width = strtol(text, &end, 10);
    if (end == text || width < 1 || width > 1000000 || count > MLP_MAX_LAYERS) return -1;
    cli->widths[count++] = (int)width;
    if (!*end) break;
    if (*end != ',') return -1;
    text = end + 1;
  }
  cli->layers = count - 1;
  if (count < 2 || cli->widths[0] != FASHION_MNIST_PIXELS) return -1;
  return cli->widths[cli->layers] == FASHION_MNIST_CLASSES ? 0 : -1;
}

/* The position of text in names, -1 if it is not there. */
static int parse_name(const char* text, const char* const* names) {
  for (int i = 0; names[i]; ++i)
    if (strcmp(text, names[i]) == 0) return i;
  return -1;
}

static int parse_dtype(const char* text, cli_t* cli) {
  static const char* const names[] = {"f64", "f32", "bf16", "f16", NULL};
  static const mlp_dtype_t dtypes[] = {MLP_F64, MLP_F32, MLP_BF16, MLP_F16};
  int found = parse_name(text, names);
  if (found >= 0) cli->dtype = dtypes[found];
  return found < 0 ? -1 : 0;
}

static int parse_progress(const char* text, cli_t* cli) {
  static const char* const names[] = {"auto", "live", "lines", NULL};
  static const progress_mode_t modes[] = {PROGRESS_AUTO, PROGRESS_LIVE, PROGRESS_LINES};
  int found = parse_name(text, names);
  if (found >= 0) cli->progress = modes[found];
  return found < 0 ? -1 : 0;
}

static int parse_option(const char* text, cli_t* cli) {
  if (cli->options == CLI_MAX_OPTIONS || !strchr(text, '=')) return -1;
  cli->option[cli->options++] = text;
  return 0;
}

static const struct option long_options[] = {{"data", required_argument, NULL, 'd'},
                                             {"layers", required_argument, NULL, 'l'},
                                             {"batch", required_argument, NULL, 'b'},
                                             {"epochs", required_argument, NULL, 'e'},
                                             {"steps", required_argument, NULL, 's'},
                                             {"dtype", required_argument, NULL, 't'},
                                             {"seed", required_argument, NULL, 'r'},
                                             {"progress", required_argument, NULL, 'p'},
                                             {"print-steps", no_argument, NULL, 'S'},
                                             {"print-final", no_argument, NULL, 'F'},
                                             {"golden-init", no_argument, NULL, 'G'},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

/* Takes one option; 0 if its argument is right. */
static int take(int letter, const char* argument, cli_t* cli) {
  int64_t number = 0;
  int wrong = 0;
  switch (letter) {
    case 'd': cli->data = argument; break;
    case 'l': wrong = parse_layers(argument, cli); break;
    case 'b':
      wrong = parse_count(argument, 1, 1000000, &number);
      cli->batch = (int)number;
      break;
    case 'e': wrong = parse_count(argument, 1, INT32_MAX, &cli->epochs); break;
    case 's': wrong = parse_count(argument, 1, INT64_MAX, &cli->steps); break;
    case 't': wrong = parse_dtype(argument, cli); break;
    case 'r':
      wrong = parse_count(argument, 0, INT64_MAX, &number);
      cli->seed = (uint64_t)number;
      break;
    case 'p': wrong = parse_progress(argument, cli); break;
    case 'o': wrong = parse_option(argument, cli); break;
    case 'S': cli->print_steps = 1; break;
    case 'F': cli->print_final = 1; break;
    default: cli->golden_init = 1; break;
  }
  return wrong;
}

cli_outcome_t cli_parse(int argc, char** argv, int talk, cli_t* cli) {
  *cli = (cli_t){.data = FASHION_MNIST_DIR,
                 .layers = 3,
                 .widths = {784, 256, 128, 10},
                 .batch = 128,
                 .epochs = 5,
                 .dtype = MLP_F32,
                 .seed = 1};
  opterr = talk;
  int letter, index = -1;
  while ((letter = getopt_long(argc, argv, "o:h", long_options, &index)) != -1) {
    if (letter == 'h') {
      if (talk) fputs(help, stdout);
      return CLI_DONE;
    }
    if (letter == '?') {
      if (talk) fprintf(stderr, "mlp_fashion_mnist --help tells what there is\n");
      return CLI_WRONG;
    }
    if (take(letter, optarg, cli) != 0) {
      if (talk)
        fprintf(stderr, "mlp_fashion_mnist: '%s' is not allowed for %s%s, see --help\n", optarg,
                index < 0 ? "-o" : "--", index < 0 ? "" : long_options[index].name);
      return CLI_WRONG;
    }
    index = -1;
  }
  if (optind < argc) {
    if (talk) fprintf(stderr, "mlp_fashion_mnist: '%s' belongs to no option, see --help\n", argv[optind]);
    return CLI_WRONG;
  }
  return CLI_RUN;
}
