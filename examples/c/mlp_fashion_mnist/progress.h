/* Progress of training for people: epoch, step, loss, speed, time left. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "cli.h"

typedef struct {
  int speaks; /* rank 0 */
  int live;   /* one line in place */
  int64_t steps, steps_per_epoch, samples_per_step;
  int64_t every;      /* steps between lines: the same on all ranks */
  int64_t shown_step; /* of the last line */
  double start, shown_time;
} progress_t;

void progress_start(progress_t* progress, progress_mode_t mode, int speaks, int64_t steps,
                    int64_t steps_per_epoch, int64_t samples_per_step);

/* 1 if a line is due after done steps. */
int progress_due(const progress_t* progress, int64_t done);
void progress_show(progress_t* progress, int64_t done, double loss);

/* Something worth a line of its own. */
void progress_note(const progress_t* progress, const char* words);
void progress_end(const progress_t* progress);

#endif
