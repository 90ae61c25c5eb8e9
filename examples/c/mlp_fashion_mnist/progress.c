#define _DEFAULT_SOURCE /* ioctl, isatty */

#include "progress.h"

#include <mpi.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* mpirun of Open MPI gives every rank a pseudo-terminal, wherever its own output goes; that one has no
 * width. */
static int on_terminal(void) {
  struct winsize size = {0, 0, 0, 0};
  return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
}

void progress_start(progress_t* progress, progress_mode_t mode, int speaks, int64_t steps,
                    int64_t steps_per_epoch, int64_t samples_per_step) {
  int64_t span = steps < steps_per_epoch ? steps : steps_per_epoch;
  progress->speaks = speaks;
  progress->live = mode == PROGRESS_LIVE || (mode == PROGRESS_AUTO && on_terminal());
  progress->steps = steps;
  progress->steps_per_epoch = steps_per_epoch;
  progress->samples_per_step = samples_per_step;
  progress->every = span < 10 ? 1 : span / 10;
  progress->shown_step = 0;
  progress->start = progress->shown_time = MPI_Wtime();
}

int progress_due(const progress_t* progress, int64_t done) {
  return done % progress->every == 0 || done == progress->steps;
}

void progress_show(progress_t* progress, int64_t done, double loss) {
  if (!progress->speaks) return;
  double now = MPI_Wtime(), seconds = now - progress->shown_time;
  double samples = (double)(done - progress->shown_step) * (double)progress->samples_per_step;
  long long left = (long long)((now - progress->start) * (double)(progress->steps - done) / (double)done);
  long long epochs = (progress->steps + progress->steps_per_epoch - 1) / progress->steps_per_epoch;
  long long epoch = (done - 1) / progress->steps_per_epoch + 1;
  printf("%sepoch %lld/%lld  step %lld/%lld  loss %.4f  %.0f samples/s  ETA %lld:%02lld%s",
         progress->live ? "\r" : "", epoch, epochs, (long long)done, (long long)progress->steps, loss,
         samples / (seconds > 0 ? seconds : 1e-9), left / 60, left % 60, progress->live ? "   " : "\n");
  fflush(stdout);
  progress->shown_step = done;
  progress->shown_time = now;
}

void progress_note(const progress_t* progress, const char* words) {
  if (progress->speaks) printf("%s%s\n", progress->live ? "\n" : "", words);
}

void progress_end(const progress_t* progress) {
  if (!progress->speaks) return;
  printf("%s%lld steps in %.1f s\n", progress->live ? "\n" : "", (long long)progress->steps,
         MPI_Wtime() - progress->start);
}
