/* Fashion-MNIST (Xiao, Rasul & Vollgraf 2017): 28 x 28 grey pictures of clothes in 10 classes. */
#ifndef FASHION_MNIST_H
#define FASHION_MNIST_H

#include <stddef.h>
#include <stdint.h>

/* Where Debian's package dataset-fashion-mnist puts it. */
#define FASHION_MNIST_DIR "/usr/share/datasets/fashion-mnist"

enum { FASHION_MNIST_PIXELS = 28 * 28, FASHION_MNIST_CLASSES = 10 };

typedef struct {
  int count;
  uint8_t* pixels; /* count x FASHION_MNIST_PIXELS */
  uint8_t* labels; /* count, 0 to 9 */
} dataset_t;

/* Reads DIR/<part>-images-idx3-ubyte.gz and its labels; part is "train" or "t10k". 0, or -1 with the reason
 * in words. */
int fashion_mnist_read(const char* dir, const char* part, dataset_t* data, char* words, size_t capacity);
void fashion_mnist_free(dataset_t* data);

#endif
