// ir/scan_loop.h - recognises scans: loops that carry running sums or products from one iteration
// to the next. They can be vectorized by a scan within each vector, to which the total of the
// vectors before is added.
#pragma once

#include <optional>
#include <vector>

#include "hone/ir/stmt.h"

namespace hone::ir {

// Returns the operator of a store x[i] = x[i] op e whose x[i] occurs once; x[i] - e counts as a
// sum, and an extreme may keep NaN (is_nan_or_extreme).
[[nodiscard]] std::optional<Op> reduction_op(const StmtNode& store);

// Returns whether an expression is select(x != x, x, max(x, y)), or so with min: NaN if x or y is.
// As the value of a store to y it makes a reduction that keeps NaN.
[[nodiscard]] bool is_nan_or_extreme(const Expr& e);

// A loop that is a scan.
struct Scan {
  std::vector<const StmtNode*> updates;  // one store of each element that is carried
};
// Returns the scan that a loop is, if it is one: it has stores s[k] = s[k] op e (op is a sum or a
// product, s is allocated by the program, k is the same in all iterations), and other stores beside
// them that read s[k] before or after its update:
//
//   for n { s[0] = s[0] + x[i, n]  y[i, n] = s[0] }
//
// The scan may cover several rows in unrolled loops, and have tests that do not depend on the
// iteration. Nothing else is carried from one iteration to the next: what the loop stores is not
// read in the loop.
[[nodiscard]] std::optional<Scan> find_scan(const StmtNode& loop);
// Returns whether the index is the variable, or minus the variable, plus a part that does not
// depend on it.
[[nodiscard]] bool moves_by_one(const Expr& index, const VarPtr& var);

}  // namespace hone::ir
