// schedule/tensorize.h - the innermost loops of a sum of products as a matrix statement, which a
// warp computes with matrix instructions (docs/formats/ir.md, "Programs of GPUs").
#pragma once

#include "hone/schedule/lower_index.h"

namespace hone::schedule {

[[nodiscard]] Status tensorize(const Tensorize& step, State& state);

// Returns the position of the first of such loops among a stage's leaves; -1 if it has none.
[[nodiscard]] int first_matrix_loop(const StageState& stage);

// Checks that the loops are the innermost ones and what they need of the stage.
[[nodiscard]] Status check_tensorized(const State& state, int s);

// Makes the matrix statement of a stage, for the loops around its matrix loops.
[[nodiscard]] Result<ir::Stmt> matrix_statement(const State& state, const Bounds& bounds,
                                                const IndexMap& index, int s);

}  // namespace hone::schedule
