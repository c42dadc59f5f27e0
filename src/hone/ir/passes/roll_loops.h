// ir/passes/roll_loops.h - makes loops of straight code that has grown too long.
//
// Machine code repeats the body of an unrolled loop. A transform of Winograd's of 8 x 8 points is
// thousands of instructions then, which take longer to compile than all else of a kernel. Where
// unrolled loops around one store make too many loads, as many of them as it takes run step by
// step, outside of the others, and what these index in registers is in memory:
//
//   alloc register t: f32[8, 8, 16] {
//     unrolled x in 0..8 { unrolled r in 0..8 { vectorized v in 0..16 {
//       t[x, r, v] = B[x, 0] * d[0, r, v] + B[x, 1] * d[1, r, v] + ...
//   alloc stack t: f32[8, 8, 16] {
//     for r in 0..8 { unrolled x in 0..8 { vectorized v in 0..16 { t[x, r, v] = ...
//
// A loop that chooses known values (Buffer::values) stays unrolled, so that they are constants.
// What a sum is kept in stays in registers: only its outermost loops run step by step, and in the
// same order, if they index none of these.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

struct RollOptions {
  // Loads of unknown values in unrolled loops around one store; more are too many. Kernels with
  // F(4x4, 3x3), whose transforms make up to 216, lose 0 to 3 % with loops; with F(6x6, 3x3), 288
  // to 512, they gain 4 to 10 % (docs/studies/compiling.md).
  int64_t max_loads = 256;
  int64_t max_prepare_loads = 32;  // the same in phases that run once, at compile time
  // The same of what is summed up: 5 x 5 taps around a register tile, which take 100 to 200 ms.
  int64_t max_sum_loads = 800;
};

[[nodiscard]] Program roll_loops(Program program, const RollOptions& options = {});

}  // namespace hone::ir
