// session/assemble_loops.h - the loops of a model in the plan of its library.
#pragma once

#include "hone/session/assemble.h"

namespace hone {

// Adds the loops to the assembly, which has all steps, and what they copy at the end of a turn.
void add_loops(const graph::TaskList& tasks, const graph::MemoryPlan& plan, Assembly& assembly);

}  // namespace hone
