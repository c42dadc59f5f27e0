// Rules for shapes that vary, of operators whose elements are independent along most dimensions.
#include <algorithm>

#include "hone/graph/integer_at.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/size_follower.h"

namespace hone::graph {
namespace {

// Operators of one operand whose result is 0 where that is.
bool keeps_zeros(const Node& node) {
  static constexpr std::string_view kTypes[] = {
      "Abs", "Cast", "Identity", "LeakyRelu", "Neg", "Relu", "Sign", "Sqrt", "Tanh", "hone.Copy"};
  return std::find(std::begin(kTypes), std::end(kTypes), node.type) != std::end(kTypes);
}

// The result has the dimensions of its operands, as broadcasting aligns them.
Status follow_pointwise(SizeRule& rule) {
  const Shape shape = rule.c.shape_of(rule.node.outputs[0]);
  ShapeParts parts(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<SharedDim> shared;
    for (ValueId& in : rule.node.inputs) {
      const size_t missing = in == kNoValue ? 0 : shape.size() - rule.c.shape_of(in).size();
      if (in != kNoValue && d >= missing && rule.c.shape_of(in)[d - missing] == shape[d])
        shared.push_back({&in, d - missing});
    }
    HONE_RETURN_IF_ERROR(share_parts(rule, shared, parts[d]));
    if (parts[d].empty()) parts[d] = {{kNoForm, shape[d]}};
  }
  for (const ValueId out : rule.node.outputs) {
    if (out != kNoValue) rule.sizes.set_parts(out, parts);
  }
  for (size_t d = 0; keeps_zeros(rule.node) && d < shape.size(); ++d) {
    if (rule.sizes.is_zero_beyond(rule.node.inputs[0], d))
      rule.sizes.set_zero_beyond(rule.node.outputs[0], d);
  }
  return ok_status();
}

// The result has the dimensions of operand 0; other operands belong to dimensions that are fixed.
Status follow_first(SizeRule& rule) {
  for (size_t i = 1; i < rule.node.inputs.size(); ++i) {
    if (rule.node.has_input(i) && rule.sizes.varies(rule.node.inputs[i]))
      return rule.c.unsupported("operand {}, a parameter, varies from run to run", i);
  }
  rule.sizes.set_parts(rule.node.outputs[0], rule.sizes.parts_of(rule.node.inputs[0]));
  return ok_status();
}

// An operator whose results at different places of dimension 0, the batch, are independent.
Status follow_batch(SizeRule& rule) {
  const ValueId x = rule.node.inputs[0];
  for (const ValueId in : rule.node.inputs) {
    if (in == kNoValue || !rule.sizes.varies(in)) continue;
    for (size_t d = 0; d < rule.c.shape_of(in).size(); ++d) {
      if (rule.sizes.varies(in, d) && (d > 0 || rule.c.shape_of(in)[0] != rule.c.shape_of(x)[0])) {
        return rule.c.unsupported(
            "dimension {} of '{}' varies from run to run, and only the batch, dimension 0, may "
            "vary: give one size for it (--shape)",
            d, rule.sizes.graph().value(in).name);
      }
    }
  }
  DimParts batch = rule.sizes.parts_of(x)[0];
  for (const ValueId in : rule.node.inputs) {
    if (in != kNoValue && rule.sizes.varies(in, 0))
      HONE_RETURN_IF_ERROR(join_parts(rule, batch, rule.sizes.parts_of(in)[0]));
  }
  for (const ValueId out : rule.node.outputs) {
    if (out == kNoValue) continue;
    ShapeParts parts = rule.sizes.parts_of(out);
    if (parts.empty()) continue;
    parts[0] = rule.sizes.parts_of(x)[0];
    rule.sizes.set_parts(out, std::move(parts));
  }
  return ok_status();
}

// Gives a result the parts of each dimension that `kept` returns, and one part that follows from
// the probes for those that it returns none for.
template <typename Kept>
Status set_parts_seen(SizeRule& rule, ValueId out, const Kept& kept) {
  ShapeParts parts;
  for (size_t d = 0; d < rule.c.shape_of(out).size(); ++d) {
    DimParts dim = kept(d);
    if (dim.empty()) {
      HONE_ASSIGN_OR_RETURN(const SizePart part, part_of(rule, out, d));
      dim.push_back(part);
    }
    parts.push_back(std::move(dim));
  }
  rule.sizes.set_parts(out, std::move(parts));
  return ok_status();
}

// An operator that makes every element from its place alone.
Status follow_seen(SizeRule& rule) {
  for (const ValueId out : rule.node.outputs) {
    if (out == kNoValue) continue;
    HONE_RETURN_IF_ERROR(set_parts_seen(rule, out, [](size_t) { return DimParts(); }));
  }
  return ok_status();
}

// Dimensions that are not repeated lie as those of the operand.
Status follow_expand(SizeRule& rule) {
  const ValueId x = rule.node.inputs[0], out = rule.node.outputs[0];
  const ShapeParts from = rule.sizes.parts_of(x);
  const Shape given = rule.c.shape_of(x), shape = rule.c.shape_of(out);
  const size_t missing = shape.size() - given.size();
  return set_parts_seen(rule, out, [&](size_t d) {
    const bool kept = d >= missing && given[d - missing] == shape[d] &&
                      (shape[d] != 1 || rule.sizes.varies(x, d - missing));
    return kept ? from[d - missing] : DimParts();
  });
}

// A new dimension of a fixed extent among those of the indices.
Status follow_one_hot(SizeRule& rule) {
  const ValueId depth = rule.node.inputs[1], out = rule.node.outputs[0];
  if (rule.c.constant_of(depth) == nullptr ||
      rule.sizes.kind_of_constant(depth) != ConstantKind::kFixed)
    return rule.c.unsupported("its depth, operand 1 ('{}'), varies from run to run",
                              rule.sizes.graph().value(depth).name);
  const Shape& shape = rule.c.shape_of(out);
  const auto axis =
      *normalize_axis(rule.node.attributes.integer("axis", -1), static_cast<int64_t>(shape.size()));
  ShapeParts parts = rule.sizes.parts_of(rule.node.inputs[0]);
  parts.insert(parts.begin() + axis, {{kNoForm, shape[static_cast<size_t>(axis)]}});
  rule.sizes.set_parts(out, std::move(parts));
  return ok_status();
}

// Elements of a matrix are kept by their row and column.
Status follow_trilu(SizeRule& rule) {
  ValueId& x = rule.node.inputs[0];
  const size_t rank = rule.c.shape_of(x).size();
  for (const size_t d : {rank - 2, rank - 1}) HONE_RETURN_IF_ERROR(make_contiguous(rule, x, d));
  rule.sizes.set_parts(rule.node.outputs[0], rule.sizes.parts_of(x));
  return ok_status();
}

// Along the axis of a running sum, what comes later does not count, unless it begins at the end or
// has gaps before elements of the run. A sum that is told how many elements there are begins with
// the last of them.
Status follow_running(SizeRule& rule) {
  const ValueId x = rule.node.inputs[0];
  const auto rank = rule.c.rank_of(x);
  const Tensor* axis = rule.c.constant_of(rule.node.inputs[1]);
  if (axis == nullptr || axis->size() != 1) return rule.c.required(1, "the axis").status();
  const auto along = static_cast<size_t>(*normalize_axis(integer_at(*axis, 0), rank));
  const ShapeParts parts = rule.sizes.parts_of(x);
  const bool gaps = !is_contiguous(parts[along]);
  const bool reverse = rule.node.attributes.integer("reverse", 0) != 0;
  if (reverse && !gaps && rule.sizes.varies(x, along) && counts_in_bodies(rule)) {
    rule.node.inputs.push_back(count_of(rule, parts[along]));
    take_counts(rule);
    rule.node.run_parts = parts;
  } else if (gaps || reverse) {
    rule.node.inputs[0] = rule.sizes.filled(rule.c, x, {along}, rule.node.type == "CumSum" ? 0 : 1);
  }
  rule.sizes.set_parts(rule.node.outputs[0], parts);
  return ok_status();
}

// Numbers from a start, by a step that may vary, too: the largest number of them is computed.
Status follow_range(SizeRule& rule) {
  const ValueId step = rule.node.inputs[2], out = rule.node.outputs[0];
  const Tensor* known = rule.c.constant_of(step);
  if (known == nullptr) return rule.c.unsupported("its step is computed at run time");
  const bool is_fixed = rule.sizes.kind_of_constant(step) == ConstantKind::kFixed;
  const double by = is_fixed ? known->at(0) : 1;
  HONE_RETURN_IF_ERROR(follow_seen(rule));
  const ShapeParts parts = rule.sizes.parts_of(out);
  ValueId places = constant_by(rule.c, rule.c.dtype_of(out), rule.c.shape_of(out),
                               [&](int64_t i) { return static_cast<double>(i) * by; });
  if (!is_fixed) {
    HONE_ASSIGN_OR_RETURN(const ValueId factor, rule.sizes.data_at_run_time(rule.c, step));
    places = rule.c.binary("Mul", places, rule.c.reshape(factor, {}));
  }
  rule.c.result(0, rule.c.binary("Add", places, rule.c.reshape(rule.node.inputs[0], {})));
  rule.sizes.set_parts(out, parts);
  rule.replaced = true;
  return ok_status();
}

// Rows go through trees by themselves: [rows, features] to [parts, rows, targets].
Status follow_trees(SizeRule& rule) {
  const ValueId rows = rule.node.inputs[0], out = rule.node.outputs[0];
  if (rule.sizes.varies(rows, 1))
    return rule.c.unsupported("the number of features varies from run to run");
  ShapeParts parts = rule.sizes.parts_of(out);
  parts[1] = rule.sizes.parts_of(rows)[0];
  rule.sizes.set_parts(out, std::move(parts));
  return ok_status();
}

constexpr SizeRuleOf kPointwise = {"", follow_pointwise};
constexpr SizeRuleOf kRules[] = {
    {"BatchNormalization", follow_first},   {"Identity", follow_pointwise},
    {"hone.Copy", follow_pointwise},        {"Trilu", follow_trilu},
    {"hone.Hold", follow_pointwise},        {"hone.Blank", follow_seen},
    {"Expand", follow_expand, 0b10},        {"ConstantOfShape", follow_seen, 0b1},
    {"Range", follow_range, 0b110},         {"OneHot", follow_one_hot, 0b10},
    {"CumSum", follow_running, 0b10},       {"CumProd", follow_running, 0b10},
    {"hone.Resample", follow_batch},        {"hone.ResamplePlane", follow_batch},
    {"hone.LinearAttention", follow_batch}, {"hone.TreeWalk", follow_trees},
};

}  // namespace

bool is_contiguous(const DimParts& parts) {
  bool slowest = true;
  for (const SizePart& part : parts) {
    if (part.most == 1) continue;
    if (part.form != kNoForm && !slowest) return false;
    slowest = false;
  }
  return true;
}

Status does_not_follow(const SizeRule& rule, ValueId out, size_t d) {
  return rule.c.unsupported(
      "dimension {} of '{}' does not follow from the sizes as a sum, a product or a quotient of "
      "them: give a range within which it does, or one size (--shape)",
      d, rule.sizes.graph().value(out).name);
}

Result<SizePart> part_of(SizeRule& rule, ValueId out, size_t d) {
  if (const auto part = rule.sizes.seen_part(out, d)) return *part;
  return does_not_follow(rule, out, d);
}

bool counts_in_bodies(const SizeRule& rule) { return rule.sizes.graph().repeats_steps; }

ValueId count_of(SizeRule& rule, const DimParts& parts) {
  return rule.c.reshape(rule.sizes.extent_of(rule.c, parts), {1});
}

void take_counts(SizeRule& rule) {
  rule.node.type = "hone." + rule.node.type;
  rule.node.op = find_op(rule.node.type, kMaxOpset);
}

Status make_contiguous(SizeRule& rule, ValueId& operand, size_t dim) {
  const auto moved = rule.sizes.side_by_side(rule.c, operand, dim);
  if (!moved) {
    return rule.c.unsupported(
        "dimension {} of '{}' merges others of which one behind the first varies, and how many "
        "elements a run has there does not follow from the sizes as a sum, a product or a quotient: "
        "give one size for that one (--shape)",
        dim, rule.sizes.graph().value(operand).name);
  }
  operand = *moved;
  return ok_status();
}

size_t axis_of(const SizeRule& rule, int64_t otherwise) {
  return static_cast<size_t>(*normalize_axis(rule.node.attributes.integer("axis", otherwise),
                                             rule.c.rank_of(rule.node.inputs[0])));
}

Status join_parts(const SizeRule& rule, DimParts& known, const DimParts& own) {
  const auto needed = [](const DimParts& parts) {
    std::vector<std::pair<int, int64_t>> several;
    for (const SizePart& part : parts) {
      if (part.most != 1) several.emplace_back(part.form, part.most);
    }
    return several;
  };
  const bool same =
      known.empty() || (is_contiguous(known) && is_contiguous(own)) || needed(known) == needed(own);
  if (!same) {
    return rule.c.unsupported(
        "a dimension that its operands share merges varying dimensions in one of them only, or "
        "others, so their elements lie at other places: give one size for these (--shape)");
  }
  const bool varies = std::any_of(own.begin(), own.end(),
                                  [](const SizePart& part) { return part.form != kNoForm; });
  if (known.empty() || varies) known = own;
  return ok_status();
}

Status share_parts(SizeRule& rule, const std::vector<SharedDim>& shared, DimParts& parts) {
  const auto join = [&] {
    for (const auto& [operand, dim] : shared)
      HONE_RETURN_IF_ERROR(join_parts(rule, parts, rule.sizes.parts_of(*operand)[dim]));
    return ok_status();
  };
  if (join().ok()) return ok_status();
  for (const auto& [operand, dim] : shared)
    HONE_RETURN_IF_ERROR(make_contiguous(rule, *operand, dim));
  parts.clear();
  return join();
}

const SizeRuleOf* size_rule_of(const Node& node) {
  for (const auto& list :
       {std::span<const SizeRuleOf>(kRules), size_rules_of_extents(), size_rules_of_shapes(),
        size_rules_of_slices(), size_rules_of_sums(), size_rules_of_reductions(),
        size_rules_of_norms(), size_rules_of_pads(), size_rules_of_places(), size_rules_of_grids(),
        size_rules_of_resizes(), size_rules_of_scatters(), size_rules_of_unpools(),
        size_rules_of_windows()}) {
    for (const SizeRuleOf& rule : list) {
      if (rule.type == node.type) return &rule;
    }
  }
  return node.op->kind == Kind::kElementwise ? &kPointwise : nullptr;
}

}  // namespace hone::graph
