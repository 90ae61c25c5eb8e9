/* Arrays of f64, f32, bf16 or f16 read and written by arithmetic in double or float. */
#ifndef NARROW_H
#define NARROW_H

#include <stddef.h>

#include "mlp.h"

/* real[i] = values[i]; real is double or float. */
void narrow_read(mlp_dtype_t dtype, const void* values, int real_is_double, void* real, size_t count);

/* values[i] = real[i], or values[i] + real[i] if add is nonzero, rounded to nearest even. */
void narrow_write(mlp_dtype_t dtype, void* values, int add, int real_is_double, const void* real,
                  size_t count);

#endif
