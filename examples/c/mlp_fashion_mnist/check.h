/* How this example treats failures: the words of the library, the rank, the end. */
#ifndef CHECK_H
#define CHECK_H

#include <gemini.h>

/* Every call to libgemini goes through this. A program that could do better (another option, a smaller
 * batch) would look at the status: above 0 nothing happened and the context is still good. */
#define CHECK(call) check_status((call), #call)

/* The same end for what the example finds wrong itself. */
#define FAIL_UNLESS(condition, words) \
  do {                                \
    if (!(condition)) fail(words);    \
  } while (0)

void check_status(gemini_status_t status, const char* call);
void fail(const char* words);

#endif
