// ir/passes/gpu/insert_barriers.h - puts barriers between loops over threads that depend on each
// other through shared or global memory, and between the iterations of loops around them:
//   thread t { S[t] = X[t] }  thread t { Y[t] = S[127 - t] }
//   ->  thread t { S[t] = X[t] }  barrier  thread t { Y[t] = S[127 - t] }
// A barrier stands directly before what depends on something earlier, in the outermost loop or
// condition that does not have both. None is needed where each element stays with one thread, and
// none helps before an asynchronous store was waited for. Inside of loops over warps, barriers of
// the warp are put between what its lanes do. Inside of roles nothing is inserted: who writes them
// writes their signals, too.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

[[nodiscard]] Program insert_barriers(Program program);

}  // namespace hone::ir
