// backend/cpu/lane_analysis.h - analyses loops of the IR: how a vectorized loop can run on lanes,
// and what a scalar loop can keep in a register.
#pragma once

#include <optional>
#include <vector>

#include "hone/ir/scan_loop.h"
#include "hone/ir/stmt.h"
#include "hone/target/loop_plan.h"

namespace hone::backend::cpu {

using ir::reduction_op;

// Returns whether the statement is `if c { B[n] = e ... n = n + 1 }`, which stores the elements
// that pass side by side, in order. n is a variable of the body, each B is a row of 4- or 8-byte
// elements that the program allocates, and neither c nor an e reads them.
[[nodiscard]] bool is_filter(const ir::StmtNode& s);

// The part of a vectorized loop's facts that its statements alone tell.
struct LaneUse {
  target::LoopFacts facts;  // without what depends on the loops around it: extent, strides
  // Reductions that can keep one partial result per lane until the loop ends.
  std::vector<const ir::StmtNode*> partials;
  ir::Scan scan;  // if the loop is one
};
[[nodiscard]] LaneUse find_lane_use(const ir::StmtNode& loop);

// Returns the only store below a loop if it can be accumulated in a register: it is a reduction in
// scalar loops, and its element is the same in all iterations. Returns null otherwise.
[[nodiscard]] const ir::StmtNode* invariant_reduction(const ir::StmtNode& loop);

// Returns quotients, roots and functions of floats that are the same in all iterations of a loop
// whose body has only stores. Those under a select are left out.
[[nodiscard]] std::vector<ir::Expr> invariant_functions(const ir::StmtNode& loop);

}  // namespace hone::backend::cpu
