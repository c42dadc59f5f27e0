// codegen/llvm/lane_analysis.h - what loops allow, read from the ir alone: how a vectorized
// one can run on lanes, and what a scalar one can keep in a register.
#pragma once

#include <optional>
#include <vector>

#include "hone/ir/scan_loop.h"
#include "hone/ir/stmt.h"

namespace hone::codegen {

using ir::reduction_op;

// `if c { B[n] = e ... n = n + 1 }`: what passes goes side by side, in order. n is a variable of
// the body, each B a row of 4- or 8-byte elements that the program allocates, and neither c nor an
// e reads them.
[[nodiscard]] bool is_filter(const ir::StmtNode& s);

struct LanePlan {
  bool filters = false;        // the body is a filter, which takes packing of lanes
  bool scans = false;          // ir::is_scan: lanes hand on what they sum up
  bool vectorizable = false;   // else the loop runs in order, one iteration at a time
  int element_bytes = 1;       // the widest element that lanes compute with
  bool fixed_indices = false;  // register buffers are indexed with the lane: chunks are unrolled
  // Reductions that can keep one partial result per lane until the loop ends.
  std::vector<const ir::StmtNode*> partials;
  int64_t statements = 0;  // stores in the body, as a measure of its size
};
[[nodiscard]] LanePlan plan_lanes(const ir::StmtNode& loop);

// The only store below a loop, if it is a reduction in scalar loops and its element is the same in
// all iterations: it can be accumulated in a register. Null otherwise.
[[nodiscard]] const ir::StmtNode* invariant_reduction(const ir::StmtNode& loop);

// Quotients, roots and functions of floats that are the same in all iterations of a loop whose body
// is nothing but stores; none of them under a select.
[[nodiscard]] std::vector<ir::Expr> invariant_functions(const ir::StmtNode& loop);

}  // namespace hone::codegen
