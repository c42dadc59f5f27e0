// ir/passes/row_loops.h - loops over rows whose bodies are stores and vectorized loops of stores,
// and what they load and store: what passes that join such loops share.
#pragma once

#include <set>

#include "hone/ir/stmt.h"

namespace hone::ir {

struct RowAccess {
  const Buffer* buffer;
  const std::vector<Expr>* indices;
  bool stores;
};
using RowAccesses = std::vector<RowAccess>;
// Valid as long as the statements are.
[[nodiscard]] RowAccesses accesses_of(const std::vector<Stmt>& statements);

// A vectorized loop of nothing but stores; what a register tile computes has its own order.
[[nodiscard]] bool is_vector_loop(const Stmt& s);
[[nodiscard]] bool is_row_body(const std::vector<Stmt>& body);

// Whether a vectorized loop of the body stores to one element in all of its iterations.
[[nodiscard]] bool reduces_lanes(const std::vector<Stmt>& body);

// Variables of loops in these bodies: what they stand for differs between statements.
[[nodiscard]] std::set<const Var*> inner_variables(const std::vector<Stmt>& body);
// Iterations touch different elements of the buffer: there is an index in which all of these
// accesses to it have the variable and the same besides, none of the inner variables.
[[nodiscard]] bool rows_apart(const RowAccesses& all, const Buffer* buffer, const VarPtr& var,
                              const std::set<const Var*>& inner);

}  // namespace hone::ir
