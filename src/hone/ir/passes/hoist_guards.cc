#include "hone/ir/passes/hoist_guards.h"

#include <algorithm>

#include "hone/ir/linear.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

// Neither reads memory nor divides by something that may be zero: may run where it did not before.
bool is_speculatable(const Expr& e) {
  if (e->op == Op::kLoad) return false;
  const bool divides = e->op == Op::kDiv || e->op == Op::kFloorDiv || e->op == Op::kFloorMod;
  if (divides && !is_float(e->type) && !(is_const_int(e->args[1]) && e->args[1]->int_value != 0))
    return false;
  return std::all_of(e->args.begin(), e->args.end(), is_speculatable);
}

// Hoists guards out of a statement whose body is done already.
Stmt hoisted(const Stmt& s) {
  const bool can_hoist = s->kind == StmtKind::kAlloc ||
                         (s->kind == StmtKind::kFor && s->for_kind != ForKind::kParallel);
  if (!can_hoist || s->body.size() != 1 || s->body[0]->kind != StmtKind::kIf) return s;
  const StmtNode& guard = *s->body[0];
  std::vector<Expr> outside, inside;
  for (const Expr& part : conjuncts(guard.condition)) {
    const bool moves = is_speculatable(part) && !(s->var && uses(part, s->var.get()));
    (moves ? outside : inside).push_back(part);
  }
  if (outside.empty()) return s;
  std::vector<Stmt> kept = guard.body;
  if (!inside.empty()) kept = {make_if(conjunction(inside), std::move(kept))};
  return make_if(conjunction(outside), {with_body(*s, std::move(kept))});
}

}  // namespace

std::vector<Expr> conjuncts(const Expr& condition) {
  if (condition->op != Op::kAnd) return {condition};
  std::vector<Expr> parts = conjuncts(condition->args[0]);
  for (Expr& p : conjuncts(condition->args[1])) parts.push_back(std::move(p));
  return parts;
}

Expr conjunction(const std::vector<Expr>& parts) {
  Expr all = constant_bool(true);
  for (const Expr& p : parts) all = logical_and(all, p);
  return all;
}

Stmt hoist_guards(const Stmt& s) { return rewrite_stmts(s, hoisted); }

Program hoist_guards(Program program) {
  return map_all_phases(std::move(program), [](const Stmt& s) { return hoist_guards(s); });
}

}  // namespace hone::ir
