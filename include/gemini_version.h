/* The one place where the version stands: CMake, the package files and the library read it from here. */
#ifndef GEMINI_VERSION_H
#define GEMINI_VERSION_H

#define GEMINI_VERSION_MAJOR 0
#define GEMINI_VERSION_MINOR 1
#define GEMINI_VERSION_PATCH 0

/** 1 if this header is of version x.y.z or later. */
#define GEMINI_VERSION_AT_LEAST(x, y, z)                                                      \
  (GEMINI_VERSION_MAJOR > (x) ||                                                              \
   (GEMINI_VERSION_MAJOR == (x) &&                                                            \
    (GEMINI_VERSION_MINOR > (y) || (GEMINI_VERSION_MINOR == (y) && GEMINI_VERSION_PATCH >= (z)))))

#endif
