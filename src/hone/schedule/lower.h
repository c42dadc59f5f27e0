// schedule/lower.h - the loop program that a State makes of its Dag.
#pragma once

#include "hone/schedule/bounds.h"

namespace hone::schedule {

// One phase per stage at root, in topological order; stages of constants become prepare phases and
// their buffers kPacked params, other intermediates at root kWorkspace params. The program is
// simplified and its peeled loops are partitioned.
[[nodiscard]] Result<ir::Program> lower(const State& state, const Bounds& bounds);
// Of steps: constants that they leave to be packed are packed in a good order (packing_order.h).
[[nodiscard]] Result<ir::Program> lower(const compute::Dag& dag, const Steps& steps);
// The same before simplification, for tests of the passes that follow.
[[nodiscard]] Result<ir::Program> lower_raw(const State& state, const Bounds& bounds);

}  // namespace hone::schedule
