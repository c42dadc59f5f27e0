// ir/passes/row_loops.h - the loads and stores of loops over rows whose bodies are stores and
// vectorized loops of stores. The passes that join such loops share this.
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
// Returns all loads and stores. The pointers are valid as long as the statements are.
[[nodiscard]] RowAccesses accesses_of(const std::vector<Stmt>& statements);

// Returns whether s is a vectorized loop whose body has only stores, none of them to registers.
[[nodiscard]] bool is_vector_loop(const Stmt& s);
[[nodiscard]] bool is_row_body(const std::vector<Stmt>& body);

// Returns whether a vectorized loop of the body stores to one element in all of its iterations.
[[nodiscard]] bool reduces_lanes(const std::vector<Stmt>& body);

// Returns the variables of loops in these bodies, whose values differ between statements.
[[nodiscard]] std::set<const Var*> inner_variables(const std::vector<Stmt>& body);
// Returns whether iterations touch different elements of the buffer: there is a dimension whose
// index, in all of these accesses to the buffer, is the variable plus one common term without inner
// variables.
[[nodiscard]] bool rows_apart(const RowAccesses& all, const Buffer* buffer, const VarPtr& var,
                              const std::set<const Var*>& inner);

}  // namespace hone::ir
