#include "hone/ir/passes/store_nest.h"

#include <algorithm>

#include "hone/ir/linear.h"
#include "hone/ir/visit.h"

namespace hone::ir {

bool is_unrolled(const Stmt& s) {
  return s->kind == StmtKind::kFor && s->for_kind == ForKind::kUnrolled;
}

std::optional<StoreNest> store_nest_of(const Stmt& s) {
  StoreNest nest;
  Stmt at = s;
  for (; at->kind != StmtKind::kStore; at = at->body[0]) {
    const bool may_move = is_unrolled(at) || at->kind == StmtKind::kIf ||
                          (at->kind == StmtKind::kFor && at->for_kind == ForKind::kVectorized);
    if (!may_move || at->body.size() != 1) return std::nullopt;
    nest.around.push_back(at);
  }
  nest.store = at;
  return nest;
}

Stmt to_stmt(const StoreNest& nest) {
  Stmt s = nest.store;
  for (size_t i = nest.around.size(); i-- > 0;) s = with_body(*nest.around[i], {s});
  return s;
}

Stmt rewrite_nests(const Stmt& s, const std::function<void(StoreNest&)>& change) {
  if (is_unrolled(s)) {
    if (std::optional<StoreNest> nest = store_nest_of(s)) {
      change(*nest);
      return to_stmt(*nest);
    }
  }
  return map_body(s, [&](const Stmt& child) { return rewrite_nests(child, change); });
}

bool stores_apart(const StoreNest& nest, const Stmt& loop) {
  return std::any_of(
      nest.store->indices.begin(), nest.store->indices.end(), [&](const Expr& index) {
        if (has_load(index)) return false;
        const Linear form = linearize(index);
        if (form.coefficient(loop->var) == 0) return false;
        const Linear rest = without(form, variable(loop->var));
        return std::none_of(nest.around.begin(), nest.around.end(), [&](const Stmt& s) {
          return s->kind == StmtKind::kFor && depends(rest, s->var);
        });
      });
}

}  // namespace hone::ir
