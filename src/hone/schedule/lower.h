// schedule/lower.h - the loop program that a State makes of its Dag.
#pragma once

#include "hone/ir/passes/pipeline.h"
#include "hone/schedule/bounds.h"

namespace hone::schedule {

// One phase per stage at root, in topological order; stages of constants become prepare phases and
// their buffers kPacked params, other intermediates at root kWorkspace params. The program went
// through the passes of ir::cpu_pipeline.
[[nodiscard]] Result<ir::Program> lower(const State& state, const Bounds& bounds,
                                        const ir::PipelineOptions& options = {});
// Of steps: constants that they leave to be packed are packed in a good order (packing_order.h).
[[nodiscard]] Result<ir::Program> lower(const compute::Dag& dag, const Steps& steps,
                                        const ir::PipelineOptions& options = {});
// The same before these passes.
[[nodiscard]] Result<ir::Program> lower_raw(const State& state, const Bounds& bounds);

}  // namespace hone::schedule
