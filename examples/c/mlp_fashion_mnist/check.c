#include "check.h"

#include <stdio.h>

static void end(const char* words, const char* detail) {
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  fprintf(stderr, "mlp_fashion_mnist: rank %d: %s%s%s\n", rank, words, detail ? ": " : "",
          detail ? detail : "");
  fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void check_status(gemini_status_t status, const char* call) {
  if (status == GEMINI_SUCCESS) return;
  char words[512];
  snprintf(words, sizeof words, "%s returned %s", call, gemini_status_string(status));
  end(words, gemini_last_error_message());
}

void fail(const char* words) {
  end(words, NULL);
}
