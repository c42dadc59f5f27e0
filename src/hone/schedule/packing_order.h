// schedule/packing_order.h - orders the loops that pack a constant. No schedule makes this choice,
// as it changes no kernel, only how long compiling and each trial take.
#pragma once

#include "hone/schedule/state.h"

namespace hone::schedule {

// Reorders every stage at root that copies constants into another layout and that no step has
// touched. The innermost digit of the layout becomes the innermost loop, so that whole cache lines
// are written and, as a line of the source is soon read again, whole lines are read; the outermost
// loop becomes parallel. In the order of the source, each element of a transposed matrix would
// touch a page of its own.
void order_packing(State& state);

}  // namespace hone::schedule
