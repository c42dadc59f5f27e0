#include "hone/backend/gpu/lane_pairs.h"

#include <algorithm>

#include "hone/backend/gpu/matrix_layout.h"
#include "hone/ir/gpu/thread_nest.h"
#include "hone/ir/linear.h"
#include "hone/ir/simplify.h"

namespace hone::backend::gpu {
namespace {

using ir::Expr;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;

// 0 <= 2 * X + c - p with an odd c is the same for p = 0 and p = 1.
bool is_same_for_both(const ir::Linear& form, const ir::VarPtr& pair) {
  const Expr p = ir::variable(pair);
  return form.coefficient(p) == -1 && form.constant % 2 != 0 &&
         std::all_of(form.terms.begin(), form.terms.end(), [&](const auto& term) {
           return ir::equal(term.first, p) ||
                  (term.second % 2 == 0 && !ir::uses(term.first, pair.get()));
         });
}

// Returns an equal condition that does not depend on which column of a pair it is, or the same.
Expr for_both(const Expr& condition, const ir::VarPtr& pair) {
  if (condition->op == Op::kAnd) {
    return ir::logical_and(for_both(condition->args[0], pair), for_both(condition->args[1], pair));
  }
  const bool compares = condition->op == Op::kLt || condition->op == Op::kLe;
  if (!compares || condition->args[0]->type != DType::kI64) return condition;
  auto form = ir::add(ir::linearize(condition->args[1]), ir::linearize(condition->args[0]), -1);
  if (form && condition->op == Op::kLt) form->constant -= 1;
  if (!form || !is_same_for_both(*form, pair)) return condition;
  return ir::substitute(condition, {{pair, ir::constant(1)}});
}

}  // namespace

Stmt loop_in_pairs(const ir::VarPtr& own, int64_t count, const std::vector<Stmt>& body,
                   const Expr& lane) {
  const ir::VarPtr first = ir::make_var(own->name), pair = ir::make_var(own->name + "_pair");
  ir::Ranges ranges;
  ranges.bind(first, {0, count / kOwnColumns - 1});
  ranges.bind(pair, {0, kOwnColumns - 1});
  ranges.bind(lane->var, {0, ir::kWarpThreads - 1});
  const Expr column = ir::variable(first) * kOwnColumns + ir::variable(pair);
  std::vector<Stmt> inside;
  for (const Stmt& s : body) {
    if (const Stmt made = ir::simplify(ir::substitute(s, {{own, column}}), ranges))
      inside.push_back(made);
  }
  std::vector<Expr> conditions;
  while (inside.size() == 1 && inside[0]->kind == StmtKind::kIf) {
    const Expr condition = for_both(inside[0]->condition, pair);
    if (ir::uses(condition, pair.get())) break;
    conditions.push_back(condition);
    inside = std::vector<Stmt>(inside[0]->body);
  }
  inside = {ir::make_for(pair, ir::constant(0), ir::constant(kOwnColumns), ir::ForKind::kVectorized,
                         std::move(inside))};
  for (size_t i = conditions.size(); i-- > 0;)
    inside = {ir::make_if(conditions[i], std::move(inside))};
  return ir::make_for(first, ir::constant(0), ir::constant(count / kOwnColumns),
                      ir::ForKind::kUnrolled, std::move(inside));
}

}  // namespace hone::backend::gpu
