/* Which samples a rank works on. */
#ifndef SAMPLES_H
#define SAMPLES_H

#include <stdint.h>

/* The order in which the training set is seen; equal on all ranks. */
typedef struct {
  int count;
  int shuffled; /* 0: file order, starting over at the end */
  uint64_t seed;
  int64_t epoch; /* the one order belongs to */
  int* order;
} samples_t;

/* 0, or -1 if memory is short. */
int samples_create(samples_t* samples, int count, int shuffled, uint64_t seed);
void samples_destroy(samples_t* samples);

/* The sample at a position of an epoch. A shuffled epoch has its own order. */
int samples_at(samples_t* samples, int64_t epoch, int64_t position);

/* A rank's contiguous part of count things, as even as can be: [first, first + returned). */
int samples_part(int count, int rank, int ranks, int* first);

#endif
