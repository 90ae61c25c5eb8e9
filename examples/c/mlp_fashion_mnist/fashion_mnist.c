#include "fashion_mnist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* One IDX file: 0, 0, type (8: bytes), number of extents, the extents as big-endian 32-bit, the values. */
typedef struct {
  char path[1024];
  gzFile file;
  char* words; /* the reason goes here */
  size_t capacity;
} idx_t;

static int complain(idx_t* idx, const char* what) {
  snprintf(idx->words, idx->capacity,
           "%s %s; Debian's package dataset-fashion-mnist has it (apt install dataset-fashion-mnist), "
           "--data names another folder",
           idx->path, what);
  return -1;
}

static int read_exactly(idx_t* idx, void* to, size_t bytes) {
  unsigned char* at = to;
  while (bytes > 0) { /* gzread counts in int */
    unsigned piece = bytes > (1u << 30) ? 1u << 30 : (unsigned)bytes;
    int got = gzread(idx->file, at, piece);
    if (got <= 0) return complain(idx, "is damaged or cut short");
    at += got;
    bytes -= (size_t)got;
  }
  return 0;
}

static uint32_t big_endian(const unsigned char* bytes) {
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Reads a file with the given number of extents; the first is the count, the others must make elems. */
static int read_values(idx_t* idx, int extents, uint32_t elems, int* count, uint8_t** values) {
  unsigned char head[16];
  if (read_exactly(idx, head, 4 + 4 * (size_t)extents) != 0) return -1;
  uint32_t product = 1;
  for (int i = 1; i < extents; ++i) product *= big_endian(head + 4 + 4 * i);
  uint32_t samples = big_endian(head + 4);
  if (head[0] != 0 || head[1] != 0 || head[2] != 8 || head[3] != extents || product != elems ||
      samples == 0 || samples > 100000000)
    return complain(idx, "is not the file of that name from Fashion-MNIST");
  size_t bytes = (size_t)samples * elems;
  *values = malloc(bytes);
  if (!*values) return complain(idx, "does not fit into memory");
  if (read_exactly(idx, *values, bytes) != 0) return -1;
  char more;
  if (gzread(idx->file, &more, 1) != 0) return complain(idx, "is damaged"); /* checks the sum at the end */
  *count = (int)samples;
  return 0;
}

static int read_file(idx_t* idx, const char* dir, const char* name, int extents, uint32_t elems, int* count,
                     uint8_t** values) {
  snprintf(idx->path, sizeof idx->path, "%s/%s", dir, name);
  idx->file = gzopen(idx->path, "rb");
  if (!idx->file) return complain(idx, "cannot be opened");
  int status = read_values(idx, extents, elems, count, values);
  gzclose(idx->file);
  return status;
}

static int labels_fit(const dataset_t* data, int labels) {
  if (labels != data->count) return 0;
  for (int i = 0; i < labels; ++i)
    if (data->labels[i] >= FASHION_MNIST_CLASSES) return 0;
  return 1;
}

int fashion_mnist_read(const char* dir, const char* part, dataset_t* data, char* words, size_t capacity) {
  idx_t idx = {.words = words, .capacity = capacity};
  char images[64], labels[64];
  int label_count = 0;
  memset(data, 0, sizeof *data);
  snprintf(images, sizeof images, "%s-images-idx3-ubyte.gz", part);
  snprintf(labels, sizeof labels, "%s-labels-idx1-ubyte.gz", part);
  int status = read_file(&idx, dir, images, 3, FASHION_MNIST_PIXELS, &data->count, &data->pixels);
  if (status == 0) status = read_file(&idx, dir, labels, 1, 1, &label_count, &data->labels);
  if (status == 0 && !labels_fit(data, label_count)) status = complain(&idx, "does not fit its pictures");
  if (status != 0) fashion_mnist_free(data);
  return status;
}

void fashion_mnist_free(dataset_t* data) {
  free(data->pixels);
  free(data->labels);
  memset(data, 0, sizeof *data);
}
