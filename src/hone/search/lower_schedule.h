// search/lower_schedule.h - makes a loop program of a schedule, for the back end of a target.
#pragma once

#include <memory>

#include "hone/compute/dag.h"
#include "hone/schedule/step.h"
#include "hone/target/target.h"

namespace hone::search {

// Programs are shared: between a candidate, the finalists of its task, and the kernels of a library
// (session/kernel_table.h).
using ProgramPtr = std::shared_ptr<const ir::Program>;

// Lowers a schedule through the passes of the target's back end. A crash on the way is an error.
[[nodiscard]] Result<ProgramPtr> lower_schedule(const compute::Dag& dag,
                                                const schedule::Steps& steps,
                                                const target::Target& target);

}  // namespace hone::search
