#include "hone/compute/stage_body.h"

#include <algorithm>

#include "hone/ir/loads.h"

namespace hone::compute {

using ir::Expr;
using ir::Op;
using ir::Stmt;

bool uses_axis(const Output& output, const Axis& axis) {
  bool used = false;
  for (const Expr& index : output.write) {
    ir::visit(index, [&](const Expr& e) { used |= e->op == Op::kVar && e->var == axis.var; });
  }
  return used;
}

AxisSplit split_axes(const Stage& stage) {
  AxisSplit split;
  for (const Axis& axis : stage.axes) {
    const bool common = stage.is_extern() || stage.outputs.size() == 1 ||
                        std::all_of(stage.outputs.begin(), stage.outputs.end(),
                                    [&](const Output& output) { return uses_axis(output, axis); });
    (common ? split.common : split.extra).push_back(axis);
  }
  return split;
}

namespace {

void append_conjuncts(const Expr& condition, std::vector<Expr>& out) {
  if (condition->op == Op::kAnd) {
    append_conjuncts(condition->args[0], out);
    append_conjuncts(condition->args[1], out);
    return;
  }
  out.push_back(condition);
}

// Returns whether no output reads what one before it has stored.
bool is_order_of_stores(const std::vector<const Output*>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (ir::loads_from(outputs[i]->value, outputs[j]->buffer.get())) return false;
    }
  }
  return true;
}

}  // namespace

WhereSplit split_where(const Stage& stage) {
  WhereSplit split;
  if (!stage.where) return split;
  std::vector<Expr> conjuncts;
  append_conjuncts(stage.where, conjuncts);
  for (const Expr& conjunct : conjuncts) {
    bool reduces = false;
    ir::visit(conjunct, [&](const Expr& e) {
      for (const Axis& axis : stage.reduce) reduces |= e->op == Op::kVar && e->var == axis.var;
    });
    Expr& part = reduces ? split.update : split.point;
    part = part ? ir::logical_and(part, conjunct) : conjunct;
  }
  return split;
}

std::vector<Stmt> point_stores(const Stage& stage, const ExtraLoops& extra_loops) {
  std::vector<const Output*> wide, narrow;
  const std::vector<Axis> extra = split_axes(stage).extra;
  for (const Output& output : stage.outputs) {
    const bool is_wide = std::any_of(extra.begin(), extra.end(),
                                     [&](const Axis& axis) { return uses_axis(output, axis); });
    (is_wide ? wide : narrow).push_back(&output);
  }
  std::vector<Stmt> stores;
  for (const Output* output : wide) {
    for (Stmt& s :
         extra_loops(*output, {ir::make_store(output->buffer, output->write, output->value)})) {
      stores.push_back(std::move(s));
    }
  }
  if (is_order_of_stores(narrow)) {
    for (const Output* output : narrow)
      stores.push_back(ir::make_store(output->buffer, output->write, output->value));
    return stores;
  }
  std::vector<ir::BufferPtr> temporaries;
  std::vector<Stmt> body;
  for (const Output* output : narrow) {
    temporaries.push_back(ir::make_buffer(output->buffer->name + ".new", output->buffer->dtype, {},
                                          ir::Scope::kStack));
    body.push_back(ir::make_store(temporaries.back(), {}, output->value));
  }
  for (size_t i = 0; i < narrow.size(); ++i) {
    body.push_back(
        ir::make_store(narrow[i]->buffer, narrow[i]->write, ir::load(temporaries[i], {})));
  }
  for (const ir::BufferPtr& temporary : temporaries)
    body = {ir::make_alloc(temporary, std::move(body))};
  for (Stmt& s : body) stores.push_back(std::move(s));
  return stores;
}

}  // namespace hone::compute
