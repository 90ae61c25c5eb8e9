#include "samples.h"

#include <stdlib.h>

/* SplitMix64 (Steele, Lea & Flood 2014): small, and the same numbers on every machine. */
static uint64_t next_random(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/* Fisher-Yates from file order, so that an epoch's order depends on seed and epoch alone. */
static void shuffle(samples_t* samples, int64_t epoch) {
  uint64_t state = samples->seed;
  state = next_random(&state) + (uint64_t)epoch;
  for (int i = 0; i < samples->count; ++i) samples->order[i] = i;
  for (int i = samples->count - 1; i > 0; --i) {
    int j = (int)(next_random(&state) % ((uint64_t)i + 1));
    int swapped = samples->order[i];
    samples->order[i] = samples->order[j];
    samples->order[j] = swapped;
  }
  samples->epoch = epoch;
}

int samples_create(samples_t* samples, int count, int shuffled, uint64_t seed) {
  *samples = (samples_t){.count = count, .shuffled = shuffled, .seed = seed, .epoch = -1};
  if (!shuffled) return 0;
  samples->order = malloc((size_t)count * sizeof *samples->order);
  return samples->order ? 0 : -1;
}

void samples_destroy(samples_t* samples) {
  free(samples->order);
  samples->order = NULL;
}

int samples_at(samples_t* samples, int64_t epoch, int64_t position) {
  if (!samples->shuffled) return (int)(position % samples->count);
  if (epoch != samples->epoch) shuffle(samples, epoch);
  return samples->order[position];
}

int samples_part(int count, int rank, int ranks, int* first) {
  *first = (int)((int64_t)count * rank / ranks);
  return (int)((int64_t)count * (rank + 1) / ranks) - *first;
}
