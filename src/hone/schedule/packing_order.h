// schedule/packing_order.h - the loops that pack a constant: a choice that no schedule makes, since
// it changes no kernel, only how long compiling and each trial take.
#pragma once

#include "hone/schedule/state.h"

namespace hone::schedule {

// For every stage at root that copies constants into another layout and that no step has touched:
// the innermost digit of the layout becomes the innermost loop, so that whole cache lines are
// written and, a line of the source being read again at once, whole lines are read; the outermost
// loop is parallel. In the order of the source alone, each element of a transposed matrix touches a
// page of its own.
void order_packing(State& state);

}  // namespace hone::schedule
