// base/assert.h - HONE_ASSERT(condition, "why") stops the program if the condition is false, which
// is a bug: no input can make it so. It is active in every build type, as a wrong kernel is worse
// than a stopped compiler.
#pragma once

#include <cstdio>
#include <cstdlib>

#define HONE_ASSERT(condition, why)                                                       \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: bug: %s [%s]\n", __FILE__, __LINE__, why, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (0)
