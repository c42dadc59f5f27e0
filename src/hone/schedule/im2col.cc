#include "hone/schedule/im2col.h"

#include <algorithm>

#include "hone/compute/stage_body.h"
#include "hone/ir/loads.h"
#include "hone/schedule/stage_rewrite.h"

namespace hone::schedule {
namespace {

using ir::Expr;
using ir::Op;

bool loads_only(const Expr& e, const ir::BufferPtr& buffer) {
  bool only = true;
  ir::visit(e, [&](const Expr& node) {
    only = only && (node->op != Op::kLoad || node->buffer == buffer);
  });
  return only;
}

// The largest parts of `e` that read `buffer` and nothing else.
void find_operands(const Expr& e, const ir::BufferPtr& buffer, std::vector<Expr>& found) {
  if (!ir::loads_from(e, buffer.get())) return;
  if (loads_only(e, buffer)) return found.push_back(e);
  for (const Expr& a : e->args) find_operands(a, buffer, found);
}

}  // namespace

Status im2col(const Im2col& step, State& state) {
  const int reader = state.find_stage(step.stage);
  if (reader < 0) return invalid("no stage {}", step.stage);
  const StageInfoPtr info = state.stages[static_cast<size_t>(reader)].info;
  const compute::Stage& stage = info->stage;
  if (stage.is_extern()) return invalid("{} is an extern stage", step.stage);
  if (stage.where || stage.outputs.size() != 1 || stage.reduce.empty())
    return invalid("{} is not a sum over all of its points", step.stage);
  ir::BufferPtr from;
  for (const compute::Access& read : info->reads) {
    if (read.buffer->name == step.buffer) from = read.buffer;
  }
  if (!from) return invalid("{} does not read {}", step.stage, step.buffer);
  std::vector<Expr> operands;
  find_operands(stage.outputs[0].value, from, operands);
  if (operands.size() != 1)
    return invalid("{} reads {} in {} places, expected one", step.stage, step.buffer,
                   operands.size());
  const Expr operand = operands[0];

  compute::Stage column;
  column.name = unique_name(state, step.buffer + ".col");
  ir::VarMap map;
  std::vector<Expr> place;
  std::vector<int64_t> shape;
  for (const compute::Axis& axis : info->axes) {
    bool used = false;
    ir::visit(operand,
              [&](const Expr& e) { used = used || (e->op == Op::kVar && e->var == axis.var); });
    if (!used) continue;
    column.axes.push_back(compute::make_axis(axis.var->name, axis.extent));
    map.push_back({axis.var, ir::variable(column.axes.back().var)});
    place.push_back(ir::variable(axis.var));
    shape.push_back(axis.extent);
  }
  if (shape.empty()) return invalid("{} reads one element of {}", step.stage, step.buffer);
  const ir::BufferPtr to = ir::make_buffer(column.name, operand->type, shape);
  column.outputs.push_back({to, compute::variables(column.axes), ir::substitute(operand, map),
                            nullptr, nullptr, nullptr});
  compute::Stage changed = stage;
  changed.outputs[0].value = ir::rewrite(stage.outputs[0].value, [&](const Expr& e) {
    return e == operand ? ir::load(to, place) : nullptr;
  });
  insert_producer(state, reader, std::move(column), std::move(changed));
  return ok_status();
}

}  // namespace hone::schedule
