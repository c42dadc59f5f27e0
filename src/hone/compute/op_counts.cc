#include "hone/compute/op_counts.h"

#include <algorithm>

#include "hone/compute/affine.h"

namespace hone::compute {
namespace {

using ir::Expr;
using ir::Op;

void count(const Expr& e, OpCounts& ops) {
  if (e->op == Op::kLoad) return;  // index arithmetic is the code generator's business
  if (e->args.empty()) return;
  // The load widens what it loads: who counts loads sees their width.
  if (e->op == Op::kCast && is_float(e->type) && e->args[0]->op == Op::kLoad) return;
  if (e->op == Op::kSelect) {
    ops.select += 1;
    count(e->args[1], ops);
    count(e->args[2], ops);
    return;
  }
  if (!is_float(e->type)) {
    ops.integer += 1;
  } else if (e->op == Op::kAdd || e->op == Op::kSub) {
    const bool fused = e->args[0]->op == Op::kMul || e->args[1]->op == Op::kMul;
    (fused ? ops.fma : ops.add) += 1;
    if (fused) ops.mul -= 1;
  } else if (e->op == Op::kMul) {
    ops.mul += 1;
  } else if (e->op == Op::kDiv) {
    ops.div += 1;
  } else if (e->op == Op::kMin || e->op == Op::kMax || e->op == Op::kNeg || e->op == Op::kAbs) {
    ops.compare += 1;
  } else {
    ops.math += 1;
  }
  for (const Expr& arg : e->args) count(arg, ops);
}

}  // namespace

void accumulate(OpCounts& sum, const OpCounts& one, double times) {
  sum.fma += times * one.fma;
  sum.add += times * one.add;
  sum.mul += times * std::max(0.0, one.mul);
  sum.div += times * one.div;
  sum.compare += times * one.compare;
  sum.select += times * one.select;
  sum.math += times * one.math;
  sum.integer += times * one.integer;
}

OpCounts count_ops(const Stage& stage) {
  OpCounts ops;
  for (const Output& output : stage.outputs) {
    if (output.value) count(output.value, ops);
  }
  return ops;
}

std::vector<bool> tested_axes(const Stage& stage) {
  const std::vector<ir::VarPtr> vars = stage_vars(stage);
  std::vector<bool> tested(vars.size(), false);
  const auto note = [&](const Expr& condition) {
    ir::visit(condition, [&](const Expr& e) {
      for (size_t a = 0; e->op == Op::kVar && a < vars.size(); ++a)
        tested[a] = tested[a] || vars[a] == e->var;
    });
  };
  for (const Output& output : stage.outputs) {
    if (!output.value) continue;
    ir::visit(output.value, [&](const Expr& e) {
      if (e->op == Op::kSelect) note(e->args[0]);
    });
  }
  return tested;
}

}  // namespace hone::compute
