// ir/verifier.h - checks that a program is well formed. Every pass may rely on these rules and must
// keep them:
#pragma once

#include "hone/base/status.h"
#include "hone/ir/stmt.h"

namespace hone::ir {

// - types and arities are right; as many indices as dimensions; indices and bounds are i64
// - variables and buffers are used inside their loop, allocation or parameter list; none is bound
//   again inside its own scope
// - inputs and constants are never written; packed only by prepare phases, which read nothing but
//   constants, packed and allocations
// - parallel loops stand outermost in their phase; parallel, unrolled and vectorized extents are
//   constants
// - parameters are global, allocations have no values; sizes are not negative
// - phases with statements of GPUs keep the rules of ir/gpu/block_rules.h
// Only the interpreter checks that indices stay in bounds. The message names the phase and the
// place.
[[nodiscard]] Status verify(const Program& program);

}  // namespace hone::ir
