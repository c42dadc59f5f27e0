// Kernels written by hand for the tests of artifacts; artifact_testing.h says what they compute.
#include <stdint.h>

#include "hone/artifact/artifact_testing.h"
#include "hone/artifact/varying_kernels_testing.h"
#include "hone/artifact/varying_testing.h"

namespace hone::artifact::testing {

// A group of sections that equal groups of other objects replace.
template <typename T>
__attribute__((noinline)) T weighted_sum(const T* weights, const T* p) {
  return weights[0] * p[0] + weights[1] * p[1] + weights[2] * p[2];
}

}  // namespace hone::artifact::testing

using hone::artifact::testing::kLength;
using hone::artifact::testing::kPast;
using hone::artifact::testing::kSeq;
using hone::artifact::testing::kTile;
using hone::artifact::testing::weighted_sum;

extern "C" {

// args: x, padded (one element of border on each side).
int test_pad(void* const* args, void*, int64_t first_tile, int64_t last_tile, int) {
  const float* x = static_cast<const float*>(args[0]);
  float* padded = static_cast<float*>(args[1]) + 1;
  for (int64_t i = first_tile * kTile; i < last_tile * kTile && i < kLength; ++i) padded[i] = x[i];
  return 0;
}

// args: padded, three weights, y. Goes through scratch memory.
int test_filter(void* const* args, void* scratch, int64_t first_tile, int64_t last_tile, int) {
  const float* padded = static_cast<const float*>(args[0]);
  const float* weights = static_cast<const float*>(args[1]);
  float* y = static_cast<float*>(args[2]);
  float* sums = static_cast<float*>(scratch);
  for (int64_t tile = first_tile; tile < last_tile; ++tile) {
    const int64_t start = tile * kTile;
    const int64_t count = kLength - start < kTile ? kLength - start : kTile;
    for (int64_t i = 0; i < count; ++i) {
      const float* p = padded + start + i;
      sums[i] = weighted_sum(weights, p);
    }
    for (int64_t i = 0; i < count; ++i) y[start + i] = sums[i];
  }
  return 0;
}

// args: x, positive values of x, their number (one int64 dim).
int test_positive(void* const* args, void*, int64_t, int64_t, int) {
  const float* x = static_cast<const float*>(args[0]);
  float* found = static_cast<float*>(args[1]);
  int64_t count = 0;
  for (int64_t i = 0; i < kLength; ++i)
    if (x[i] > 0) found[count++] = x[i];
  *static_cast<int64_t*>(args[2]) = count;
  return 0;
}

// args: any number of floats behind each other's pointers; the first is the output.
int test_gather3(void* const* args, void*, int64_t, int64_t, int) {
  float* out = static_cast<float*>(args[0]);
  for (int i = 0; i < 3; ++i) out[i] = *static_cast<const float*>(args[1 + i]);
  return 0;
}

int test_fails(void* const*, void*, int64_t, int64_t, int) { return 7; }

// These three are explained in varying_testing.h.
int test_add_rows(void* const* args, void*, int64_t first_tile, int64_t last_tile, int) {
  return hone::artifact::testing::add_rows(args, kSeq, first_tile, last_tile);
}
int test_add_long_rows(void* const* args, void*, int64_t first_tile, int64_t last_tile, int) {
  return hone::artifact::testing::add_rows(args, kPast + kSeq, first_tile, last_tile);
}
int test_copy_sizes(void* const* args, void*, int64_t, int64_t, int) {
  return hone::artifact::testing::copy_sizes(args);
}

}  // extern "C"
