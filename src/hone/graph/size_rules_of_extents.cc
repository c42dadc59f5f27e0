// Rules for shapes that vary, of what stands between the sizes of a run and the largest shapes
// (graph/widen_nodes.h), and of results whose shape depends on data.
#include <algorithm>

#include "hone/graph/size_follower.h"
#include "hone/graph/size_values.h"

namespace hone::graph {
namespace {

// The result is as large in all runs.
Status follow_widen(SizeRule& rule) {
  const Shape shape = rule.node.attributes.integers("shape");
  ValueId& x = rule.node.inputs[0];
  std::vector<size_t> dims;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0) continue;
    HONE_RETURN_IF_ERROR(make_contiguous(rule, x, d));
    dims.push_back(d);
  }
  ShapeParts parts = rule.sizes.parts_of(x);
  if (!rule.node.attributes.has("value"))
    rule.sizes.set_undefined_beyond(rule.node.outputs[0], parts);
  for (const size_t d : dims) parts[d] = {{kNoForm, shape[d]}};
  if (rule.node.attributes.has("value")) {
    const double value = static_cast<double>(rule.node.attributes.number("value", 0));
    x = rule.sizes.filled(rule.c, x, dims, value);
  }
  rule.c.result(0, x);
  rule.sizes.set_parts(rule.node.outputs[0], std::move(parts));
  rule.replaced = true;
  return ok_status();
}

Status follow_narrow(SizeRule& rule) {
  const auto axis = static_cast<size_t>(rule.node.attributes.integer("axis", 0));
  const auto of = static_cast<size_t>(rule.node.attributes.integer("of", 0));
  HONE_RETURN_IF_ERROR(make_contiguous(rule, rule.node.inputs[1], of));
  ShapeParts parts = rule.sizes.parts_of(rule.node.inputs[0]);
  parts[axis] = rule.sizes.parts_of(rule.node.inputs[1])[of];
  if (rule.node.attributes.has("factor")) {
    HONE_ASSIGN_OR_RETURN(const SizePart seen, part_of(rule, rule.node.outputs[0], axis));
    parts[axis] = {seen};
  }
  rule.c.result(0, rule.node.inputs[0]);
  rule.sizes.set_parts(rule.node.outputs[0], std::move(parts));
  rule.replaced = true;
  return ok_status();
}

Status follow_extent(SizeRule& rule) {
  const auto axis = static_cast<size_t>(rule.node.attributes.integer("axis", 0));
  const DimParts parts = rule.sizes.parts_of(rule.node.inputs[0])[axis];
  rule.c.result(0, rule.c.reshape(rule.sizes.extent_of(rule.c, parts), {1}));
  rule.sizes.set_parts(rule.node.outputs[0], {{{kNoForm, 1}}});
  rule.replaced = true;
  return ok_status();
}

// Rows that a run does not have are not looked at, and columns are alike in all rows.
Status follow_unique(SizeRule& rule) {
  ValueId& x = rule.node.inputs[0];
  HONE_RETURN_IF_ERROR(make_contiguous(rule, x, 0));
  const ShapeParts parts = rule.sizes.parts_of(x);
  x = rule.sizes.filled(rule.c, x, {1}, 0);
  if (rule.sizes.varies(x, 0) && !rule.node.has_input(1)) {
    const ValueId rows = rule.c.reshape(rule.sizes.extent_of(rule.c, parts[0]), {1});
    rule.node.inputs.resize(2, kNoValue);
    rule.node.inputs[1] = rows;
  }
  for (size_t i = 0; i < rule.node.outputs.size() && i < 4; ++i) {
    if (rule.node.outputs[i] != kNoValue)
      rule.sizes.set_parts(rule.node.outputs[i], i == 0 ? parts : ShapeParts{parts[0]});
  }
  return rule.c.status();
}

// The condition takes nothing that a run does not have.
Status follow_compress(SizeRule& rule) {
  ValueId &x = rule.node.inputs[0], &condition = rule.node.inputs[1];
  HONE_RETURN_IF_ERROR(make_contiguous(rule, x, 0));
  HONE_RETURN_IF_ERROR(make_contiguous(rule, condition, 0));
  const ValueId out = rule.node.outputs[0];
  ShapeParts parts = rule.sizes.parts_of(x);
  const Varying& varying = rule.sizes.graph().varying;
  const int64_t least = shape_of({parts[0]}, {0}, sizes_of(varying, smallest_symbols(varying)))[0];
  if (!rule.sizes.varies(condition, 0) && rule.c.shape_of(condition)[0] > least)
    return rule.c.unsupported(
        "its condition has {} elements, and there may be as few as {} to choose from: give a range "
        "that begins higher (--shape)",
        rule.c.shape_of(condition)[0], least);
  HONE_ASSIGN_OR_RETURN(const SizePart taken, part_of(rule, out, 0));
  parts[0] = {taken};
  if (!rule.sizes.varies(condition, 0) || rule.node.has_input(2)) {
    // All of the condition is there, or the operator knows how much.
  } else if (counts_in_bodies(rule)) {
    rule.node.inputs.push_back(count_of(rule, rule.sizes.parts_of(condition)[0]));
  } else {
    condition = rule.sizes.filled(rule.c, condition, {0}, 0);
  }
  rule.sizes.set_parts(out, std::move(parts));
  return rule.c.status();
}

// Rows that are not counted are not read, and a run has no more rows than its operands.
Status follow_append(SizeRule& rule) {
  std::vector<ValueId>& operands = rule.node.inputs;
  const ValueId out = rule.node.outputs[0];
  ShapeParts parts = rule.sizes.parts_of(operands[0]);
  for (size_t i = 0; i + 1 < operands.size(); ++i) {
    HONE_RETURN_IF_ERROR(make_contiguous(rule, operands[i], 0));
    const ShapeParts own = rule.sizes.parts_of(operands[i]);
    for (size_t d = 1; d < parts.size(); ++d)
      HONE_RETURN_IF_ERROR(join_parts(rule, parts[d], own[d]));
  }
  HONE_ASSIGN_OR_RETURN(const SizePart rows, part_of(rule, out, 0));
  parts[0] = {rows};
  rule.sizes.set_parts(out, std::move(parts));
  return rule.c.status();
}

// All its steps are there at any size.
Status follow_last_step(SizeRule& rule) {
  const ShapeParts parts = rule.sizes.parts_of(rule.node.inputs[0]);
  DimParts rows = parts[1];
  if (rule.node.has_input(2))
    HONE_RETURN_IF_ERROR(join_parts(rule, rows, rule.sizes.parts_of(rule.node.inputs[2])[0]));
  rule.sizes.set_parts(rule.node.outputs[0], {std::move(rows), parts[2]});
  return ok_status();
}

// Steps of a row change places with one another only.
Status follow_reverse_steps(SizeRule& rule) {
  ShapeParts parts = rule.sizes.parts_of(rule.node.inputs[0]);
  if (rule.node.has_input(2))
    HONE_RETURN_IF_ERROR(join_parts(rule, parts[1], rule.sizes.parts_of(rule.node.inputs[2])[0]));
  rule.sizes.set_parts(rule.node.outputs[0], std::move(parts));
  return ok_status();
}

// The result lies as its extents, which are computed, say.
Status follow_compact(SizeRule&) { return ok_status(); }

constexpr SizeRuleOf kRules[] = {
    {"hone.Widen", follow_widen},       {"hone.Extent", follow_extent},
    {"hone.Narrow", follow_narrow},     {"hone.LastStep", follow_last_step},
    {"hone.Compact", follow_compact},   {"hone.Unique", follow_unique},
    {"hone.Compress", follow_compress}, {"hone.ReverseSteps", follow_reverse_steps},
    {"hone.Append", follow_append},
};

}  // namespace

std::span<const SizeRuleOf> size_rules_of_extents() { return kRules; }

}  // namespace hone::graph
