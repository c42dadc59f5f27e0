// artifact/varying_kernels_testing.h - the functions that the kernels of varying_testing.h call.
#pragma once

#include <stdint.h>

namespace hone::artifact::testing {

// Adds 1 to rows of `width` floats.
inline int add_rows(void* const* args, int64_t width, int64_t first, int64_t last) {
  for (int64_t i = first * width; i < last * width; ++i)
    static_cast<float*>(args[1])[i] = static_cast<const float*>(args[0])[i] + 1;
  return 0;
}

inline int copy_sizes(void* const* args) {
  for (int64_t i = 0; i < 3; ++i)
    static_cast<int64_t*>(args[1])[i] = static_cast<const int64_t*>(args[0])[i];
  return 0;
}

}  // namespace hone::artifact::testing
