// ir/gpu/block_rules.h - the rules for phases that the threads of a GPU's blocks run together
// (docs/formats/ir.md, "Programs of GPUs"); a part of ir/verifier.h.
#pragma once

#include "hone/base/status.h"
#include "hone/ir/stmt.h"

namespace hone::ir {

// Checks the body of a phase that is_gpu_code() and keeps the rules of all programs:
// - Outside of loops over threads, the block runs loops, conditions, allocations of shared memory,
//   fragments and signals, barriers and other statements of the block, but accesses no data. What
//   decides there depends on the variables of such loops and on loads of parameters that the phase
//   does not write.
// - Loops over threads count from 0 to a constant. A loop over threads has another one only
//   directly inside, or under conditions; one over warps may have statements and loops over lanes.
// - The leading indices of accesses to a fragment are the variables of the loops over threads, and
//   the leading extents theirs (0 may stand for the variable of a loop that runs once); all
//   accesses give elements to the same threads. But a warp as a whole may also load what its lanes
//   have, and lanes what is one element of their warp.
// - Asynchronous stores copy elements from global to shared memory, or zero instead of an element.
// - The boxes of matrix statements and copies fit together.
[[nodiscard]] Status check_block_rules(const StmtNode& phase);

}  // namespace hone::ir
