// ir/share_sums.h - sums with known factors that differ in signs only have their parts computed
// once.
//
// Winograd's matrices have such lines for the points a and -a: the even powers are the same, the
// odd ones change their sign. Rows, as of the data's transform (d may be any value):
//
//   unrolled x { unrolled r {                          B = {4, 4, 1, 1, 4, -4, 1, -1}
//     t[x, r] = B[x, 0] * d[0, r] + B[x, 1] * d[1, r] + B[x, 2] * d[2, r] + B[x, 3] * d[3, r]
//   unrolled r { unrolled x {                          B' = {4, 4, 1, 1, 1, 4, 4, 1, 1, -1}
//     t[x, r] = B'[x, 0] * d[0, r] + B'[x, 2] * d[2, r] + B'[x, 4] * (B'[x, 1] * d[1, r] + B'[x, 3]
//     * d[3, r])
//
// and columns, as of the transform back:  A[x, i] * d[i] + A[x, j] * d[j] = A[x, i] * (d[i] + S[x]
// * d[j]). The last column of the new matrix is the sign. Nothing is computed once here: in
// straight code equal parts are found when machine code is made, where the sign is known; the loop
// over rows becomes the innermost, so that they lie beside each other. Results round otherwise than
// before.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

[[nodiscard]] Program share_sums(Program program);

}  // namespace hone::ir
