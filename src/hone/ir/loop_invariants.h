// ir/loop_invariants.h - finds what loops compute in each iteration although nothing changes it.
#pragma once

#include <unordered_map>
#include <vector>

#include "hone/ir/stmt.h"

namespace hone::ir {

// The largest expressions inside a loop that its variable and those of the loops inside it do not
// occur in, for each loop below a statement, in the order in which they are evaluated. They load
// nothing and cannot fail, so they may be evaluated before the loop, whether or not it has
// iterations. Parts of one that a loop further out does not change either belong to that loop.
// The pointers are into the program.
using LoopInvariants = std::unordered_map<const StmtNode*, std::vector<const Expr*>>;
[[nodiscard]] LoopInvariants loop_invariants(const StmtNode& body);

// Hash and equality of expressions as trees, for tables of one process.
struct HashTree {
  size_t operator()(const Expr* e) const;
};
struct EqualTree {
  bool operator()(const Expr* a, const Expr* b) const { return equal(*a, *b); }
};

}  // namespace hone::ir
