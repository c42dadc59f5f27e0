// ir/passes/share_sums.h - sums with known factors that differ in signs only have their parts
// computed once.
//
// Winograd's matrices have such lines for the points a and -a: the even powers are the same, the
// odd ones change their sign. Rows, as of the data's transform (d may be any value), where two rows
// of B are {4, 4, 1, 1} and {4, -4, 1, -1}, of C {4, 4, 1, 1, 1} and {4, 4, 1, 1, -1}:
//
//   unrolled x { unrolled r {
//     t[x, r] = B[x, 0] * d[0] + B[x, 1] * d[1] + B[x, 2] * d[2] + B[x, 3] * d[3] } }
//   unrolled r { unrolled x {
//     t[x, r] = C[x, 0] * d[0] + C[x, 2] * d[2] + C[x, 4] * (C[x, 1] * d[1] + C[x, 3] * d[3]) } }
//
// and columns, as of the transform back:
//
//   A[x, i] * d[i] + A[x, j] * d[j]  ->  A[x, i] * (d[i] + S[x] * d[j])
//
// The last column of the new matrix is the sign. Nothing is computed once here: in straight code
// equal parts are found when machine code is made, where the sign is known; the loop over rows
// becomes the innermost of the unrolled ones, so that they lie beside each other. Results round
// otherwise than before.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

[[nodiscard]] Program share_sums(Program program);

}  // namespace hone::ir
