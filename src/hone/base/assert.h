// base/assert.h - HONE_ASSERT(condition, "why"): a bug if it fails, never reachable by input.
// Active in every build type: a wrong kernel is worse than a stopped compiler.
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
