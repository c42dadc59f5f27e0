// ir/passes/share_windows.h - what neighbouring windows have in common is summed up once.
//
// Where the taps of a window and several points are straight code, points have whole columns of
// taps in common. A column's sum (or maximum, or minimum) becomes one expression:
//
//   unrolled kw in 0..3 { unrolled kh in 0..3 { unrolled w in 0..4 {
//     a[w] = a[w] + x[kh, kw + w] } } }
//   ->
//   unrolled w in 0..4 { unrolled kw in 0..3 {
//     a[w] = a[w] + (x[0, kw + w] + x[1, kw + w] + x[2, kw + w]) } }
//
// Nothing is computed once here: in straight code equal parts are found when machine code is made.
// These are 6 columns of 2 additions and 12 more, 24 instead of 36. The axis is the one that leaves
// least to add, and all stays as it is where that gains nothing: a product's terms differ. Sums
// round otherwise than before.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

[[nodiscard]] Program share_windows(Program program);

}  // namespace hone::ir
