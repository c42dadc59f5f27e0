// schedule/im2col.h - the step im2col. It makes an operand of a sum a stage of its own, which
// stores one element for each pair of points of the sum that read different elements.
#pragma once

#include "hone/schedule/state.h"

namespace hone::schedule {

//   sum over k of f(b[i + k]) * w[k]
//     ->  b.col[i, k] = f(b[i + k]);  sum over k of b.col[i, k] * w[k]
// The operand is the largest part of the value that reads only this buffer, so its zeros around the
// borders and what was inlined into it are computed once. Its axes are those of the reader that it
// depends on, in the same order and with the same names. It is computed at root, or where the
// buffer is computed if that is inside a loop.
[[nodiscard]] Status im2col(const Im2col& step, State& state);

}  // namespace hone::schedule
