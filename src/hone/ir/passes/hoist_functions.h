// ir/passes/hoist_functions.h - computes ahead of a loop over vectors what all of its iterations
// have in common.
//
// The quotients of a softmax over channels, for a block of columns:
//   for r in 0..21 { vectorized i in 0..32 { out[r, i] = e[r, i] * (1.0 / total[i]) } }
// becomes
//   alloc stack shared: f32[32] {
//     vectorized i in 0..32 { shared[i] = 1.0 / total[i] }
//     for r in 0..21 { vectorized i in 0..32 { out[r, i] = e[r, i] * shared[i] } }
//   }
// Only slow operations are hoisted: quotients, roots and functions of floats, and only if there are
// few enough vectors of them to stay in registers.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

// Hoists in every phase except those that prepare constants.
[[nodiscard]] Program hoist_functions(Program program);

}  // namespace hone::ir
