// schedule/fused_rows.h - rows that weigh the digits of a fused loop as the loop itself does: the
// index n * 3136 + oh * 56 + ow is the loop n@oh@ow, so what tiles of that loop touch is a box.
#pragma once

#include "hone/schedule/bounds.h"

namespace hone::schedule {

// A part of a row: a fused loop that was split, with its weight.
struct FusedTerm {
  int loop;
  int64_t coef;
};
// Returns such parts of a row over the axes of a stage. `taken` receives which axes they stand for.
[[nodiscard]] SmallVector<FusedTerm, 4> fused_terms(const StageState& stage,
                                                    const StageBounds& bounds,
                                                    const compute::AffineRow& row,
                                                    SmallVector<bool, 16>& taken);

// Adds the leaves and digits below a loop, weighted. False if there is no room for them.
[[nodiscard]] bool add_leaves(const State& state, const Bounds& bounds, int s, int loop,
                              int64_t stride, Linear& own);

}  // namespace hone::schedule
