// backend/gpu/warp_lanes.h - gives the lanes of a warp their parts of what the warp does together.
//
// Loops over the rows or columns of fragments that the lanes have together (matrix_layout.h) become
// loops over what one lane has of them. What is summed up, or whose maximum or minimum is taken,
// along columns is combined by the four lanes that have a row. What is reduced along all lanes, of
// which each has one term, is exchanged by all of them, and each lane has the result. An element of
// memory is stored by one lane, and the warp waits before and after that.
#pragma once

#include <string_view>

#include "hone/base/status.h"
#include "hone/ir/stmt.h"

namespace hone::backend::gpu {

// Rewrites the body of a phase so that stores inside of loops over warps are in loops over lanes. A
// fragment f32[w, .., m, n] becomes f32[w, 32, .., m / 8, n / 4], and the boxes of matrix
// statements are boxes of it with the lane 0. The calls of functions "quad_sum", "quad_max" and
// "quad_min" stand for the exchange between four lanes, "warp_sum" and so on for that between all.
// It is an error if a statement has no such form.
[[nodiscard]] Result<ir::Stmt> spread_over_lanes(const ir::Stmt& phase);

}  // namespace hone::backend::gpu
