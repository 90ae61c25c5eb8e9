#include "mlp.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "narrow.h"

#define REAL double
#define NAME(function) function##_f64
#define GEMM cblas_dgemm
#define EXP exp
#define LOG log
#include "mlp_real.h"
#undef REAL
#undef NAME
#undef GEMM
#undef EXP
#undef LOG

#define REAL float
#define NAME(function) function##_f32
#define GEMM cblas_sgemm
#define EXP expf
#define LOG logf
#include "mlp_real.h"

static size_t real_bytes(const mlp_t* net) {
  return net->in_double ? sizeof(double) : sizeof(float);
}

/* Weights and gradients are not of the type computed in. */
static int is_narrow(const mlp_t* net) {
  return net->dtype != (net->in_double ? MLP_F64 : MLP_F32);
}

static size_t weight_elems(const mlp_t* net, int l) {
  return (size_t)net->width[l] * net->width[l + 1];
}

static int allocate(mlp_t* net) {
  int widest = 0;
  size_t largest = 0;
  for (int l = 0; l <= net->layers; ++l) {
    net->activation[l] = malloc((size_t)net->capacity * net->width[l] * real_bytes(net));
    if (!net->activation[l]) return -1;
    if (net->width[l] > widest) widest = net->width[l];
    if (l < net->layers && weight_elems(net, l) > largest) largest = weight_elems(net, l);
  }
  for (int i = 0; i < 2; ++i) {
    net->delta[i] = malloc((size_t)net->capacity * widest * real_bytes(net));
    if (!net->delta[i]) return -1;
  }
  if (!is_narrow(net)) return 0;
  net->wide_weight = malloc(largest * real_bytes(net));
  net->wide_bias = malloc((size_t)widest * real_bytes(net));
  return net->wide_weight && net->wide_bias ? 0 : -1;
}

int mlp_create(mlp_t* net, mlp_dtype_t dtype, mlp_arithmetic_t arithmetic, int layers, const int* width,
               int capacity) {
  memset(net, 0, sizeof *net);
  net->dtype = dtype;
  net->in_double = dtype == MLP_F64 || arithmetic == MLP_DOUBLE;
  net->layers = layers;
  net->capacity = capacity;
  memcpy(net->width, width, (size_t)(layers + 1) * sizeof *width);
  if (allocate(net) == 0) return 0;
  mlp_destroy(net);
  return -1;
}

void mlp_destroy(mlp_t* net) {
  for (int l = 0; l <= net->layers; ++l) free(net->activation[l]);
  free(net->delta[0]);
  free(net->delta[1]);
  free(net->wide_weight);
  free(net->wide_bias);
  memset(net, 0, sizeof *net);
}

void mlp_set_input(mlp_t* net, int sample, const uint8_t* pixels) {
  size_t first = (size_t)sample * net->width[0];
  if (net->in_double)
    set_input_f64((double*)net->activation[0] + first, pixels, net->width[0]);
  else
    set_input_f32((float*)net->activation[0] + first, pixels, net->width[0]);
}

/* What gemm can read: the values themselves, or a widened copy in scratch. */
static const void* widened(const mlp_t* net, const void* values, void* scratch, size_t count) {
  if (!is_narrow(net)) return values;
  narrow_read(net->dtype, values, net->in_double, scratch, count);
  return scratch;
}

void mlp_forward(mlp_t* net, int l, int samples, const void* weight, const void* bias) {
  int in = net->width[l], out = net->width[l + 1], relu = l + 1 < net->layers;
  if (samples == 0) return;
  const void* w = widened(net, weight, net->wide_weight, weight_elems(net, l));
  const void* b = widened(net, bias, net->wide_bias, (size_t)out);
  if (net->in_double)
    forward_f64(net->activation[l], w, b, net->activation[l + 1], samples, in, out, relu);
  else
    forward_f32(net->activation[l], w, b, net->activation[l + 1], samples, in, out, relu);
}

/* The deltas of the outputs of layer l; those of its inputs lie in the other buffer. */
static void* delta_out(const mlp_t* net, int l) {
  return net->delta[l % 2];
}

mlp_score_t mlp_loss(mlp_t* net, int samples, const uint8_t* labels, double factor) {
  mlp_score_t score = {0, 0};
  int classes = net->width[net->layers];
  const void* z = net->activation[net->layers];
  void* delta = delta_out(net, net->layers - 1);
  for (int s = 0; s < samples; ++s) {
    size_t first = (size_t)s * classes;
    if (net->in_double)
      loss_f64((const double*)z + first, classes, labels[s], factor, (double*)delta + first, &score);
    else
      loss_f32((const float*)z + first, classes, labels[s], (float)factor, (float*)delta + first, &score);
  }
  return score;
}

static void weight_gradient(const mlp_t* net, int l, int samples, mlp_grad_t weight, mlp_grad_t bias) {
  int in = net->width[l], out = net->width[l + 1];
  if (net->in_double)
    weight_gradient_f64(net->activation[l], delta_out(net, l), samples, in, out, weight, bias);
  else
    weight_gradient_f32(net->activation[l], delta_out(net, l), samples, in, out, weight, bias);
}

/* Formed in the wide type, rounded once. */
static void narrow_weight_gradient(const mlp_t* net, int l, int samples, mlp_grad_t weight, mlp_grad_t bias) {
  mlp_grad_t wide_weight = {net->wide_weight, 0}, wide_bias = {net->wide_bias, 0};
  weight_gradient(net, l, samples, wide_weight, wide_bias);
  narrow_write(net->dtype, weight.values, weight.add, net->in_double, net->wide_weight, weight_elems(net, l));
  narrow_write(net->dtype, bias.values, bias.add, net->in_double, net->wide_bias, (size_t)net->width[l + 1]);
}

void mlp_backward(mlp_t* net, int l, int samples, const void* weight, mlp_grad_t weight_grad,
                  mlp_grad_t bias_grad) {
  int in = net->width[l], out = net->width[l + 1];
  const void* x = net->activation[l];
  void *delta = delta_out(net, l), *dx = delta_out(net, l + 1);
  if (l > 0) { /* the pictures themselves need no gradient */
    const void* w = widened(net, weight, net->wide_weight, weight_elems(net, l));
    if (net->in_double)
      input_gradient_f64(x, w, delta, dx, samples, in, out);
    else
      input_gradient_f32(x, w, delta, dx, samples, in, out);
  }
  if (is_narrow(net))
    narrow_weight_gradient(net, l, samples, weight_grad, bias_grad);
  else
    weight_gradient(net, l, samples, weight_grad, bias_grad);
}
