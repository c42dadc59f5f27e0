// ir/passes/jam_loops.h - unroll and jam: the iterations of an unrolled loop over rows run side by
// side in the loops over vectors inside it.
//
//   unrolled i in 0..2 { w[i] = 0.0  vectorized r { w[i] = w[i] + exp(x[i, r]) } }
// becomes
//   w[0] = 0.0
//   w[1] = 0.0
//   vectorized r {
//     w[0] = w[0] + exp(x[0, r])
//     w[1] = w[1] + exp(x[1, r])
//   }
// Loops are jammed only in blocks that have both reductions along lanes and functions of elements
// (as a softmax does) and whose rows are short, so that their loops are straight code. Iterations
// of other loops overlap anyway, and then read one stream at a time. The bodies must be stores and
// vectorized loops of stores. The value of each store, and the order of the stores to an element,
// stay the same.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

// Jams loops in every phase except those that prepare constants. It then fuses loops over rows that
// have lost their tests, and loops over the same vectors (fuse_loops).
[[nodiscard]] Program jam_loops(Program program);

}  // namespace hone::ir
