// ir/passes/fuse_loops.h - makes one loop of neighbouring loops over the same rows, where each row
// of the second needs only its own row of the first. A row is still in the nearest cache then, and
// a reduction of what was just computed costs no loads.
//
// A softmax whose rows are kept:
//   for m { most[m] = -inf  vectorized r { most[m] = max(most[m], x[m, r]) } }
//   for m { vectorized n { w[m, n] = exp(x[m, n] - most[m]) } }
//   for m { total[m] = 0.0  vectorized r { total[m] = total[m] + w[m, r] } }
// becomes
//   for m {
//     most[m] = -inf
//     vectorized r { most[m] = max(most[m], x[m, r]) }
//     total[m] = 0.0
//     vectorized n { w[m, n] = exp(x[m, n] - most[m])  total[m] = total[m] + w[m, n] }
//   }
// Only loops whose bodies are stores and vectorized loops of stores: what a register tile computes
// has its own order. Only where the second loop reads what the first one stores; of unrolled loops
// over rows only where a reduction takes what was just computed, as the rows overlap as they are.
// What each store computes, and the order of the stores to an element, stay the same.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

// Of every phase but those that prepare constants.
[[nodiscard]] Program fuse_loops(Program program);

}  // namespace hone::ir
