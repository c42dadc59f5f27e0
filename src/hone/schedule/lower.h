// schedule/lower.h - lowers a State to a loop program.
#pragma once

#include "hone/ir/passes/pipeline.h"
#include "hone/schedule/bounds.h"

namespace hone::schedule {

// Makes a program with one phase per stage at root, in topological order. Stages that read only
// constants become phases that prepare constants, and their buffers kPacked params; other
// intermediates at root become kWorkspace params. The program then goes through the passes of
// ir::cpu_pipeline.
[[nodiscard]] Result<ir::Program> lower(const State& state, const Bounds& bounds,
                                        const ir::PipelineOptions& options = {});
// Lowers a schedule. Loops that pack constants and that no step has touched get a good order
// (packing_order.h). The program goes through `passes`, which are those of the target's back end
// (backend/backend.h).
[[nodiscard]] Result<ir::Program> lower(const compute::Dag& dag, const Steps& steps,
                                        std::span<const ir::Pass> passes,
                                        const ir::PipelineOptions& options = {});
// Does the same with the passes of ir::cpu_pipeline.
[[nodiscard]] Result<ir::Program> lower(const compute::Dag& dag, const Steps& steps,
                                        const ir::PipelineOptions& options = {});
// Lowers a State without these passes.
[[nodiscard]] Result<ir::Program> lower_raw(const State& state, const Bounds& bounds);

}  // namespace hone::schedule
