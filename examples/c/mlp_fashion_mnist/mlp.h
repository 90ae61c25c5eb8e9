/* A multilayer perceptron for one rank's samples: y = relu(W x + b) layer by layer (the last without relu),
 * softmax cross entropy. It knows nothing of MPI or libgemini: weights and gradients are handed in. */
#ifndef MLP_H
#define MLP_H

#include <stddef.h>
#include <stdint.h>

enum { MLP_MAX_LAYERS = 32 };

/* Type of weights and gradients. */
typedef enum { MLP_F64, MLP_F32, MLP_BF16, MLP_F16 } mlp_dtype_t;

/* What is computed in: the type itself, float for 16-bit ones; or double whatever the type, which leaves no
 * visible trace of the order in which BLAS adds. */
typedef enum { MLP_FAST, MLP_DOUBLE } mlp_arithmetic_t;

typedef struct {
  int layers;                    /* weight layers */
  int width[MLP_MAX_LAYERS + 1]; /* width[l] goes into layer l, width[l + 1] comes out */
  int capacity;                  /* samples that fit */
  mlp_dtype_t dtype;
  int in_double;                        /* computes in double, else in float */
  void* activation[MLP_MAX_LAYERS + 1]; /* capacity x width[l] */
  void* delta[2];                       /* gradient of the loss by the outputs of a layer and by its inputs */
  void *wide_weight, *wide_bias; /* the layer at hand in the type computed in, where dtype is another */
} mlp_t;

/* Sums over the samples of one call. */
typedef struct {
  double loss;
  int64_t correct;
} mlp_score_t;

/* Memory for a gradient of W or b; with add != 0 what is there already is added to. */
typedef struct {
  void* values;
  int add;
} mlp_grad_t;

/* 0, or -1 if memory is short. */
int mlp_create(mlp_t* net, mlp_dtype_t dtype, mlp_arithmetic_t arithmetic, int layers, const int* width,
               int capacity);
void mlp_destroy(mlp_t* net);

/* Makes a picture the input of one sample: bytes become 0 to 1. */
void mlp_set_input(mlp_t* net, int sample, const uint8_t* pixels);

/* Layer l for the first samples: W is width[l + 1] x width[l] (row-major), b is width[l + 1]. */
void mlp_forward(mlp_t* net, int l, int samples, const void* weight, const void* bias);

/* Loss of the last layer's output. Its gradient, times factor, is what the backward calls start from. */
mlp_score_t mlp_loss(mlp_t* net, int samples, const uint8_t* labels, double factor);

/* Gradients of layer l; called from the last layer down to the first. */
void mlp_backward(mlp_t* net, int l, int samples, const void* weight, mlp_grad_t weight_grad,
                  mlp_grad_t bias_grad);

#endif
