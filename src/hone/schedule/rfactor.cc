#include "hone/schedule/rfactor.h"

#include <algorithm>

#include "hone/compute/stage_body.h"

namespace hone::schedule {
namespace {

using compute::Axis;
using compute::Output;
using compute::Stage;
using ir::Expr;
using ir::Op;

// A reduce axis in parts: `each` counts them, `rest` runs inside one.
struct AxisParts {
  Axis each, rest;
  Expr whole;           // the axis in terms of both
  bool beyond = false;  // which may lie beyond its end
};

AxisParts divide(const Axis& axis, const RFactor& step) {
  const int64_t factor = std::min(step.factor, axis.extent);
  const int64_t blocks = (axis.extent + factor - 1) / factor;
  const bool strided = step.parts == Parts::kStrided;
  const Axis each =
      compute::make_axis(step.axis + (strided ? "i" : "o"), strided ? factor : blocks);
  const Axis rest = compute::make_axis(step.axis, strided ? blocks : factor);
  const Axis &outer = strided ? rest : each, &inner = strided ? each : rest;
  return {each, rest, ir::variable(outer.var) * factor + ir::variable(inner.var),
          blocks * factor != axis.extent};
}

// Where the parts of an output are kept: the part, then the axes that the output uses.
struct PartBuffer {
  ir::BufferPtr buffer;
  std::vector<Expr> at;
};

PartBuffer part_buffer(const Stage& stage, const Output& output, const Axis& each) {
  std::vector<int64_t> shape = {each.extent};
  std::vector<Expr> at = {ir::variable(each.var)};
  for (const Axis& axis : stage.axes) {
    bool used = stage.outputs.size() == 1;
    for (const Expr& e : output.write) {
      ir::visit(e,
                [&](const Expr& node) { used |= node->op == Op::kVar && node->var == axis.var; });
    }
    if (!used) continue;
    shape.push_back(axis.extent);
    at.push_back(ir::variable(axis.var));
  }
  return {ir::make_buffer(output.buffer->name + ".rf", output.buffer->dtype, shape), std::move(at)};
}

// Elements of from[i] become those that kept[i] has of a part.
Expr load_parts(const Expr& e, const std::vector<ir::BufferPtr>& from,
                const std::vector<PartBuffer>& kept, const Axis& part) {
  return ir::rewrite(e, [&](const Expr& node) -> Expr {
    if (node->op != Op::kLoad) return nullptr;
    const auto found = std::find(from.begin(), from.end(), node->buffer);
    if (found == from.end()) return nullptr;
    const PartBuffer& place = kept[static_cast<size_t>(found - from.begin())];
    std::vector<Expr> at = place.at;
    at[0] = ir::variable(part.var);
    return ir::load(place.buffer, at);
  });
}

// Makes a part divisible like the whole, if it has one result.
void keep_merge(const Output& whole, const PartBuffer& kept, Output& part) {
  part.other =
      ir::make_buffer(kept.buffer->name + ".other", kept.buffer->dtype, kept.buffer->shape);
  part.merge = ir::rewrite(whole.merge, [&](const Expr& node) -> Expr {
    if (node->op != Op::kLoad) return nullptr;
    if (node->buffer == whole.buffer) return ir::load(kept.buffer, kept.at);
    return node->buffer == whole.other ? ir::load(part.other, kept.at) : nullptr;
  });
}

// The reduction of each part by itself.
Stage part_stage(const Stage& stage, const Axis& axis, const AxisParts& parts,
                 const std::vector<PartBuffer>& kept) {
  Stage part = stage;
  part.op.clear();
  part.until = nullptr;
  part.axes.insert(part.axes.begin(), parts.each);
  for (Axis& reduce : part.reduce) {
    if (reduce.var == axis.var) reduce = parts.rest;
  }
  const ir::VarMap map = {{axis.var, parts.whole}};
  if (stage.where) part.where = ir::substitute(stage.where, map);
  if (parts.beyond) {
    const Expr inside = ir::less(parts.whole, ir::constant(axis.extent));
    part.where = part.where ? ir::logical_and(part.where, inside) : inside;
  }
  std::vector<ir::BufferPtr> results;
  for (const Output& output : stage.outputs) results.push_back(output.buffer);
  for (size_t i = 0; i < stage.outputs.size(); ++i) {
    const Expr value = ir::substitute(stage.outputs[i].value, map);
    part.outputs[i] = {kept[i].buffer,
                       kept[i].at,
                       load_parts(value, results, kept, parts.each),
                       stage.outputs[i].identity,
                       nullptr,
                       nullptr};
  }
  if (stage.outputs.size() == 1) keep_merge(stage.outputs[0], kept[0], part.outputs[0]);
  return part;
}

// Returns the stage that joins the parts.
Stage merge_stage(const Stage& stage, const Axis& each, const std::vector<PartBuffer>& kept) {
  Stage merged = stage;
  const Axis part = compute::make_axis(each.var->name, each.extent);
  merged.reduce = {part};
  merged.until = nullptr;
  std::vector<ir::BufferPtr> others;
  for (const Output& output : stage.outputs) others.push_back(output.other);
  for (size_t i = 0; i < stage.outputs.size(); ++i)
    merged.outputs[i].value = load_parts(stage.outputs[i].merge, others, kept, part);
  if (stage.where) merged.where = compute::split_where(stage).point;
  return merged;
}

}  // namespace

Result<Factored> factor_reduction(const Stage& stage, const RFactor& step, std::string part_name) {
  const auto axis = std::find_if(stage.reduce.begin(), stage.reduce.end(),
                                 [&](const Axis& a) { return a.var->name == step.axis; });
  if (axis == stage.reduce.end()) return invalid("{} has no reduce axis {}", step.stage, step.axis);
  if (step.factor < 1) return invalid("factor {} is not positive", step.factor);
  for (const Output& output : stage.outputs) {
    if (!output.merge) return invalid("{} cannot be merged from parts", step.stage);
  }
  const AxisParts parts = divide(*axis, step);
  std::vector<PartBuffer> kept;
  for (const Output& output : stage.outputs) kept.push_back(part_buffer(stage, output, parts.each));
  Factored made{part_stage(stage, *axis, parts, kept), merge_stage(stage, parts.each, kept)};
  made.part.name = std::move(part_name);
  return made;
}

}  // namespace hone::schedule
