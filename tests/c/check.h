/* What the parts of the C program share. A rank that finds something wrong says so and ends all. */
#ifndef GEMINI_TEST_C_CHECK_H
#define GEMINI_TEST_C_CHECK_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gemini.h"

#define CHECK(condition)                                                                                  \
  do {                                                                                                    \
    if (!(condition)) {                                                                                   \
      fprintf(stderr, "%s:%d: not so on rank %d: %s (%s)\n", __FILE__, __LINE__, test_rank(), #condition, \
              gemini_last_error_message());                                                               \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                                       \
    }                                                                                                     \
  } while (0)
#define OK(call) CHECK((call) == GEMINI_SUCCESS)
#define NEAR(expected, value, tolerance) CHECK(fabs((double)(expected) - (double)(value)) <= (tolerance))

int test_rank(void);
int test_ranks(void);

/* A context with these key-value pairs, ended by NULL. */
gemini_context_t make_context(const char* const* pairs);
/* A vector whose elements are all `value`; not committed. */
gemini_param_t add_constant(gemini_context_t ctx, const char* name, gemini_dtype_t dtype, int64_t elems,
                            double value);
/* One micro-batch of an F32 or F64 parameter with the same gradient everywhere. */
void train(gemini_context_t ctx, gemini_param_t param, double gradient);

void test_story(void);
void test_registration(void);
void test_initial_values(void);
void test_gradients(void);
void test_values(void);
void test_custom_update(void);
void test_insight(void);

#endif
