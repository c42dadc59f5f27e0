// backend/cpu/sample_programs_testing.h - programs that the tests and benchmarks of this
// folder share. Not part of the library.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::backend::cpu {

// The program C[m, n] = sum over k of A[m, k] * B[n / tile_n, k, n % tile_n] for one tile of tile_m
// x tile_n. Accumulators are in registers, and k is the innermost loop around the tile. m and n
// must be multiples of the tile.
struct GemmShape {
  int64_t m, n, k;
  int64_t tile_m, tile_n;
  int64_t lanes;  // lanes of the vectorized loop
  int64_t unroll_k = 1;
};
[[nodiscard]] ir::Program gemm_program(const GemmShape& shape);

// The program Out[h, w, oc] = sum over kh, kw, ic of In[h + kh, w + kw, ic] * W[oc / tile_oc, kh,
// kw, ic, oc % tile_oc] with 3x3 taps, NHWC, padded input, and tile_w x tile_oc accumulators.
struct ConvShape {
  int64_t height, width, in_channels, out_channels;
  int64_t tile_w, tile_oc;
  int64_t lanes;
};
[[nodiscard]] ir::Program conv_program(const ConvShape& shape);

}  // namespace hone::backend::cpu
