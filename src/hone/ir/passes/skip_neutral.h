// ir/passes/skip_neutral.h - skips steps of a reduction that would change nothing.
//
// If a window reads its padding, each vector of it is selected from memory or the neutral element:
//
//   unrolled c { vectorized l {
//     a[c, l] = max(a[c, l], select(1 <= row, x[row - 1, c, l], -inf)) } }
//   ->
//   if (1 <= row) { unrolled c { vectorized l { a[c, l] = max(a[c, l], x[row - 1, c, l]) } } }
//
// The result has one branch for all vectors of a point instead of one for each, between which the
// vectors of `a` would not stay in registers. A condition that differs between lanes stays as it
// is.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

[[nodiscard]] Program skip_neutral(Program program);

}  // namespace hone::ir
