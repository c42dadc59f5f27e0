// ir/passes/hoist_functions.h - computes ahead of a loop over vectors what all of its iterations
// share.
//
// The quotients of a softmax over channels, for a block of columns:
//   for r in 0..21 { vectorized i in 0..32 { out[r, i] = e[r, i] * (1.0 / total[i]) } }
// becomes
//   alloc stack shared: f32[32] {
//     vectorized i in 0..32 { shared[i] = 1.0 / total[i] }
//     for r in 0..21 { vectorized i in 0..32 { out[r, i] = e[r, i] * shared[i] } }
//   }
// Only what takes long: quotients, roots and functions of floats. The vectors are few enough to
// stay in registers.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

// Of every phase but those that prepare constants.
[[nodiscard]] Program hoist_functions(Program program);

}  // namespace hone::ir
