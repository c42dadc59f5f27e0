// ir/passes/fuse_loops.h - joins neighbouring loops over the same rows into one, if each row of the
// second loop needs only the same row of the first. A row is then still in the nearest cache, and a
// reduction of what was just computed needs no loads.
//
// A softmax whose rows are stored:
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
// Loops are joined only if their bodies are stores and vectorized loops of stores, as the code of a
// register tile has an order of its own, and only if the second loop reads what the first one
// stores. Unrolled loops over rows are joined only if a reduction takes what was just computed, as
// such rows overlap anyway. The value of each store, and the order of the stores to an element,
// stay the same.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

// Fuses loops in every phase except those that prepare constants.
[[nodiscard]] Program fuse_loops(Program program);

}  // namespace hone::ir
