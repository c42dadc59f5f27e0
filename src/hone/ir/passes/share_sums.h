// ir/passes/share_sums.h - shares the parts of sums with known factors that differ only in their
// signs.
//
// Winograd's matrices have such lines for the points a and -a: the even powers are equal, the odd
// ones change their sign. The first form is rows, as in the data's transform (d may be any value),
// where two rows of B are {4, 4, 1, 1} and {4, -4, 1, -1}, and those of C are {4, 4, 1, 1, 1} and
// {4, 4, 1, 1, -1}:
//
//   unrolled x { unrolled r {
//     t[x, r] = B[x, 0] * d[0] + B[x, 1] * d[1] + B[x, 2] * d[2] + B[x, 3] * d[3] } }
//   unrolled r { unrolled x {
//     t[x, r] = C[x, 0] * d[0] + C[x, 2] * d[2] + C[x, 4] * (C[x, 1] * d[1] + C[x, 3] * d[3]) } }
//
// The second form is columns, as in the inverse transform:
//
//   A[x, i] * d[i] + A[x, j] * d[j]  ->  A[x, i] * (d[i] + S[x] * d[j])
//
// The last column of the new matrix is the sign. This pass only makes equal parts visible: LLVM
// computes equal parts of straight code once, and there the sign is known. The loop over rows
// becomes the innermost of the unrolled ones, so that equal parts are next to each other. Results
// are rounded differently than before.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

[[nodiscard]] Program share_sums(Program program);

}  // namespace hone::ir
