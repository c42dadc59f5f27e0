// ir/passes/roll_loops.h - turns unrolled loops back into loops if their straight code is too long.
//
// Machine code repeats the body of an unrolled loop. A transform of Winograd's for 8 x 8 points
// then has thousands of instructions, which take longer to compile than the rest of a kernel. If
// the unrolled loops around one store make too many loads, as many of them as necessary become
// serial loops outside the others, and the registers that they index become memory:
//
//   alloc register t: f32[8, 8, 16] {
//     unrolled x in 0..8 { unrolled r in 0..8 { vectorized v in 0..16 {
//       t[x, r, v] = B[x, 0] * d[0, r, v] + B[x, 1] * d[1, r, v] + ...
//   alloc stack t: f32[8, 8, 16] {
//     for r in 0..8 { unrolled x in 0..8 { vectorized v in 0..16 { t[x, r, v] = ...
//
// A loop that selects known values (Buffer::values) stays unrolled, so that they are constants. The
// accumulator of a sum stays in registers: only its outermost loops become serial, in the same
// order, and only if they do not index the accumulator.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

struct RollOptions {
  // The most loads of unknown values in the unrolled loops around one store. Kernels with F(4x4,
  // 3x3), whose transforms make up to 216, lose 0 to 3 % with loops; with F(6x6, 3x3), which make
  // 288 to 512, they gain 4 to 10 % (docs/studies/compiling.md).
  int64_t max_loads = 256;
  int64_t max_prepare_loads = 32;  // as max_loads, in phases that run once, at compile time
  // The bound like max_loads for sums: 5 x 5 taps around a register tile compile in 100 to 200 ms.
  int64_t max_sum_loads = 800;
};

[[nodiscard]] Program roll_loops(Program program, const RollOptions& options = {});

}  // namespace hone::ir
