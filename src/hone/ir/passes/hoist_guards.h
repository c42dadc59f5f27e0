// ir/passes/hoist_guards.h - moves an if out of the loops (and allocations) that lie wholly under
// it:
//   for i { if (c && d(i)) S }  ->  if (c) { for i { if (d(i)) S } }
// Conjuncts with loads stay. A parallel loop stays outermost, so its guards stay inside it.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

[[nodiscard]] Program hoist_guards(Program program);
[[nodiscard]] Stmt hoist_guards(const Stmt& s);

// Returns the parts of a && b && c, in order.
[[nodiscard]] std::vector<Expr> conjuncts(const Expr& condition);
// Joins the parts again; the result is true if there are none.
[[nodiscard]] Expr conjunction(const std::vector<Expr>& parts);

}  // namespace hone::ir
