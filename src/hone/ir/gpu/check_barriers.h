// ir/gpu/check_barriers.h - proves that barriers keep apart what the threads of a block do to one
// element of shared or global memory. It shares no code with the pass that inserts barriers
// (ir/passes/gpu/insert_barriers.h).
//
// From each access all paths through the loops and conditions of the block are followed up to the
// next barrier. Another access on such a path must touch no element of it from another thread, for
// all values of the variables that the block shares; which elements each thread touches is found by
// running through the iterations. What is read or overwritten while an asynchronous copy of it is
// not waited for is an error, too. Loops over threads must be independent in themselves, and roles
// are not looked into: both is left to the interpreter (RunOptions::check_races).
#pragma once

#include "hone/base/status.h"
#include "hone/ir/stmt.h"

namespace hone::ir {

// Returns an error that names both accesses if a barrier is missing, or cannot be shown to be
// needless.
[[nodiscard]] Status check_barriers(const Program& program);

}  // namespace hone::ir
