// ir/passes/share_windows.h - shares the sums that neighbouring windows have in common.
//
// If the taps of a window and several points are straight code, points have whole columns of taps
// in common. A column's sum, or its maximum in a[w] = max(x, a[w]), becomes one expression:
//
//   unrolled kw in 0..3 { unrolled kh in 0..3 { unrolled w in 0..4 {
//     a[w] = a[w] + x[kh, kw + w] } } }
//   ->
//   unrolled w in 0..4 { unrolled kw in 0..3 {
//     a[w] = a[w] + (x[0, kw + w] + x[1, kw + w] + x[2, kw + w]) } }
//
// This pass only makes equal parts visible: LLVM computes equal parts of straight code once. The
// example has 6 columns of 2 additions and 12 more, 24 instead of 36. The pass chooses the axis
// that leaves the fewest additions, and changes nothing if no axis has fewer, as in a matrix
// product, whose terms differ. Sums are rounded differently than before.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

[[nodiscard]] Program share_windows(Program program);

}  // namespace hone::ir
