#include "narrow.h"

#include <stdint.h>
#include <string.h>

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* bfloat16 is the upper half of a float. */
static float from_bfloat(uint16_t half) {
  return float_of((uint32_t)half << 16);
}

static uint16_t to_bfloat(float value) {
  uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40); /* NaN stays NaN */
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* IEEE half: 5 bits of exponent with bias 15 (float: 127), 10 bits of fraction (float: 23). */
static float from_ieee(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) return float_of(sign | 0x7f800000 | magnitude << 13); /* infinity, NaN */
  if (magnitude >= 0x0400) return float_of(sign | ((magnitude << 13) + ((127 - 15) << 23)));
  float small = (float)magnitude * 0x1p-24f; /* subnormal: multiples of 2^-24 */
  return sign ? -small : small;
}

static uint16_t to_ieee(float value) {
  uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00);  /* NaN */
  if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* from 65520 on: infinity */
  if (magnitude < 0x38800000) { /* below 2^-14: the last place of 0.5f is 2^-24, so the addition rounds */
    return (uint16_t)(sign | (bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f)));
  }
  magnitude += 0xfff + (magnitude >> 13 & 1);
  return (uint16_t)(sign | (magnitude - ((127 - 15) << 23)) >> 13);
}

static double get(mlp_dtype_t dtype, const void* values, size_t i) {
  switch (dtype) {
    case MLP_F64: return ((const double*)values)[i];
    case MLP_F32: return ((const float*)values)[i];
    case MLP_BF16: return from_bfloat(((const uint16_t*)values)[i]);
    default: return from_ieee(((const uint16_t*)values)[i]);
  }
}

static void set(mlp_dtype_t dtype, void* values, size_t i, double value) {
  switch (dtype) {
    case MLP_F64: ((double*)values)[i] = value; break;
    case MLP_F32: ((float*)values)[i] = (float)value; break;
    case MLP_BF16: ((uint16_t*)values)[i] = to_bfloat((float)value); break;
    default: ((uint16_t*)values)[i] = to_ieee((float)value); break;
  }
}

void narrow_read(mlp_dtype_t dtype, const void* values, int real_is_double, void* real, size_t count) {
  if (real_is_double)
    for (size_t i = 0; i < count; ++i) ((double*)real)[i] = get(dtype, values, i);
  else
    for (size_t i = 0; i < count; ++i) ((float*)real)[i] = (float)get(dtype, values, i);
}

void narrow_write(mlp_dtype_t dtype, void* values, int add, int real_is_double, const void* real,
                  size_t count) {
  for (size_t i = 0; i < count; ++i) {
    double value = real_is_double ? ((const double*)real)[i] : ((const float*)real)[i];
    set(dtype, values, i, add ? get(dtype, values, i) + value : value);
  }
}
