// ir/scan_loop.h - loops that carry running sums or products from step to step, and so can run in
// vectors all the same: the sums within a vector, and what came before added to all of them.
#pragma once

#include <optional>

#include "hone/ir/stmt.h"

namespace hone::ir {

// A store x[i] = x[i] op e, whose x[i] occurs once; for sums also x[i] - e.
[[nodiscard]] std::optional<Op> reduction_op(const StmtNode& store);

// Whether a loop is a scan: steps s[k] = s[k] op e (op a sum or a product, s allocated by the
// program, k the same in all steps), and stores beside them that read what s[k] is before or after:
//
//   for n { s[0] = s[0] + x[i, n]  y[i, n] = s[0] }
//
// also of several rows in unrolled loops and under tests that all steps share. Nothing else is
// carried from one step to the next: what is stored is read nowhere in the loop.
[[nodiscard]] bool is_scan(const StmtNode& loop);
// The index is the variable, or minus it, plus what does not depend on it.
[[nodiscard]] bool moves_by_one(const Expr& index, const VarPtr& var);

}  // namespace hone::ir
