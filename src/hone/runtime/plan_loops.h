// runtime/plan_loops.h - the loops of a plan: what of them a damaged plan may say wrongly.
#pragma once

#include "hone/runtime/plan.h"

namespace hone::runtime {

// Returns what is wrong with the loops of a plan and their copies, or null. All tables of the plan
// fit, and so do its steps.
[[nodiscard]] const char* loops_check(const PlanHeader& plan);
// Likewise of the memory that the runtime itself writes in a run: places that copies and loops
// write, and the sizes of the run. Copies come from elsewhere and go to places of their own, and
// nothing writes over the sizes. Loops, arguments and sizes are in range.
[[nodiscard]] const char* written_places_check(const PlanHeader& plan);

}  // namespace hone::runtime
