// backend/gpu/lane_pairs.h - a loop over the columns that a lane has of a fragment, in pairs of
// neighbours, so that both are one access to memory.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::backend::gpu {

// Returns the loop over `count` columns, the variable of which is `own`, as one over pairs with a
// vectorized loop over the two columns inside. Conditions that hold for both columns of a pair or
// for none stand outside of that. `lane` is the variable of the lanes.
[[nodiscard]] ir::Stmt loop_in_pairs(const ir::VarPtr& own, int64_t count,
                                     const std::vector<ir::Stmt>& body, const ir::Expr& lane);

}  // namespace hone::backend::gpu
