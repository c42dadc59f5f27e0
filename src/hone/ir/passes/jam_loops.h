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
// Only in blocks with reductions along lanes and functions of elements, as a softmax's, and of
// short rows, whose loops are straight code: others overlap as they are, and read one stream at a
// time. Only loops whose bodies are stores and vectorized loops of stores. What each store
// computes, and the order of the stores to an element, stay the same.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

// Of every phase but those that prepare constants. Loops over rows that only now have no tests are
// joined, too, and so are loops over the same vectors (fuse_loops).
[[nodiscard]] Program jam_loops(Program program);

}  // namespace hone::ir
