// Rules for shapes that vary, of reductions.
#include <algorithm>

#include "hone/graph/neutral.h"
#include "hone/graph/size_follower.h"

namespace hone::graph {
namespace {

// Returns which dimensions a reduction reduces.
Result<std::vector<bool>> reduced_dims(SizeRule& rule) {
  HONE_ASSIGN_OR_RETURN(const auto axes, rule.c.integers_or_attribute(1, "axes"));
  const bool all = !axes || axes->empty();
  const int64_t rank = rule.c.rank_of(rule.node.inputs[0]);
  std::vector<bool> is_reduced(static_cast<size_t>(rank),
                               all && rule.node.attributes.integer("noop_with_empty_axes", 0) == 0);
  for (size_t i = 0; !all && i < axes->size(); ++i)
    is_reduced[static_cast<size_t>(*normalize_axis((*axes)[i], rank))] = true;
  return is_reduced;
}

// Returns the number that changes nothing in a reduction of this kind.
double neutral_in(std::string_view type, DType dtype) {
  if (type == "ReduceProd") return 1;
  const bool least = type == "ReduceMax" || type == "ArgMax" || type == "ReduceLogSumExp";
  const bool most = type == "ReduceMin" || type == "ArgMin";
  return neutral_of(dtype, least ? -1 : most ? 1 : 0);
}

ShapeParts parts_of_reduced(const SizeRule& rule, ValueId x, const std::vector<bool>& is_reduced,
                            bool keep) {
  const ShapeParts from = rule.sizes.parts_of(x);
  ShapeParts parts;
  for (size_t d = 0; d < from.size(); ++d) {
    if (!is_reduced[d]) parts.push_back(from[d]);
    if (is_reduced[d] && keep) parts.push_back({{kNoForm, 1}});
  }
  return parts;
}

// Returns the reduction that joins the results of this one along other dimensions; empty if there
// is none.
std::string joined_by(const std::string& type) {
  if (type == "ReduceL1" || type == "ReduceSumSquare") return "ReduceSum";
  const bool is_own =
      type == "ReduceSum" || type == "ReduceProd" || type == "ReduceMax" || type == "ReduceMin";
  return is_own ? type : "";
}

// Returns whether several parts of the dimensions vary that can be reduced one after the other.
bool is_in_turn(const SizeRule& rule, const std::string& type, ValueId x,
                const std::vector<size_t>& dims) {
  const ShapeParts parts = rule.sizes.parts_of(x);
  int64_t varying = 0;
  for (const size_t d : dims)
    varying += std::count_if(parts[d].begin(), parts[d].end(),
                             [](const SizePart& part) { return part.form != kNoForm; });
  return varying > 1 && !joined_by(type).empty();
}

// Reduces the parts that vary one by one, from the last on, as a loop over one of them ends where
// the size does. The result has one element in place of each dimension.
ValueId reduced_in_turn(SizeRule& rule, const std::string& type, ValueId x,
                        std::vector<size_t> dims) {
  ExpandContext& c = rule.c;
  Shape result = c.shape_of(x);
  for (const size_t d : dims) result[d] = 1;
  ValueId y = with_parts_apart(rule, x, dims);
  ShapeParts parts = rule.sizes.parts_of(y);
  std::vector<int64_t> fixed;
  std::string by = type;
  const auto reduce = [&](ValueId of, const std::vector<int64_t>& axes) {
    y = c.reduce(by.c_str(), of, axes);
    for (const int64_t axis : axes) parts[static_cast<size_t>(axis)] = {{kNoForm, 1}};
    rule.sizes.set_parts(y, parts);
    by = joined_by(type);
  };
  for (size_t i = dims.size(); i-- > 0;) {
    const auto axis = static_cast<int64_t>(dims[i]);
    if (rule.sizes.varies(y, dims[i]))
      reduce(rule.sizes.filled(c, y, {dims[i]}, neutral_in(by, c.dtype_of(y))), {axis});
    else
      fixed.push_back(axis);
  }
  if (!fixed.empty()) reduce(y, fixed);
  return c.reshape(y, result);
}

Status follow_reduction(SizeRule& rule) {
  HONE_ASSIGN_OR_RETURN(const std::vector<bool> is_reduced, reduced_dims(rule));
  const ValueId x = rule.node.inputs[0];
  const bool keep = rule.node.attributes.integer("keepdims", 1) != 0;
  std::vector<size_t> dims;
  bool mixes = false;
  for (size_t d = 0; d < is_reduced.size(); ++d) {
    if (!is_reduced[d]) continue;
    dims.push_back(d);
    mixes = mixes || rule.sizes.varies(x, d);
  }
  ShapeParts parts = parts_of_reduced(rule, x, is_reduced, keep);
  if (mixes && rule.node.type == "ReduceMean") {
    build_mean(rule, x, dims, keep);
  } else if (mixes && is_in_turn(rule, rule.node.type, x, dims)) {
    const bool rounds = rule.node.type != "ReduceMax" && rule.node.type != "ReduceMin";
    const ValueId y = reduce_run(rule, rule.node.type, rounds ? widened(rule, x) : x, dims, keep);
    rule.c.result(0, rule.c.cast(y, rule.c.dtype_of(x)));
    rule.replaced = true;
  } else if (mixes) {  // the node stays
    rule.node.inputs[0] =
        rule.sizes.filled(rule.c, x, dims, neutral_in(rule.node.type, rule.c.dtype_of(x)));
  }
  rule.sizes.set_parts(rule.node.outputs[0], std::move(parts));
  return ok_status();
}

// The number that is filled in is no more than any element, so it is found where all elements of a
// run are as little, and the last one of these is the last one of the run.
Status follow_arg(SizeRule& rule) {
  const size_t axis = axis_of(rule, 0);
  HONE_RETURN_IF_ERROR(make_contiguous(rule, rule.node.inputs[0], axis));
  const ValueId x = rule.node.inputs[0], out = rule.node.outputs[0];
  std::vector<bool> is_reduced(rule.c.shape_of(x).size(), false);
  is_reduced[axis] = true;
  ShapeParts parts =
      parts_of_reduced(rule, x, is_reduced, rule.node.attributes.integer("keepdims", 1) != 0);
  const ValueId given =
      rule.sizes.filled(rule.c, x, {axis}, neutral_in(rule.node.type, rule.c.dtype_of(x)));
  rule.node.inputs[0] = given;
  if (rule.sizes.varies(x, axis) && rule.node.attributes.integer("select_last_index", 0) != 0) {
    const ValueId last =
        rule.c.binary("Add", rule.sizes.extent_of(rule.c, rule.sizes.parts_of(x)[axis]), -1.0);
    rule.c.result(0, rule.c.binary("Min", rule.c.add_like(rule.node, {given}), last));
    rule.replaced = true;
  }
  rule.sizes.set_parts(out, std::move(parts));
  return ok_status();
}

constexpr SizeRuleOf kRules[] = {
    {"ReduceSum", follow_reduction, 0b10},
    {"ReduceMean", follow_reduction, 0b10},
    {"ReduceProd", follow_reduction, 0b10},
    {"ReduceMax", follow_reduction, 0b10},
    {"ReduceMin", follow_reduction, 0b10},
    {"ReduceL1", follow_reduction, 0b10},
    {"ReduceL2", follow_reduction, 0b10},
    {"ReduceSumSquare", follow_reduction, 0b10},
    {"ReduceLogSum", follow_reduction, 0b10},
    {"ReduceLogSumExp", follow_reduction, 0b10},
    {"ArgMax", follow_arg},
    {"ArgMin", follow_arg},
};

}  // namespace

ValueId with_parts_apart(SizeRule& rule, ValueId x, std::vector<size_t>& dims) {
  ExpandContext& c = rule.c;
  const ShapeParts from = rule.sizes.parts_of(x);
  const Shape all = c.shape_of(x);
  Shape shape;
  ShapeParts parts;
  std::vector<size_t> apart;
  for (size_t d = 0; d < from.size(); ++d) {
    if (std::count(dims.begin(), dims.end(), d) == 0) {
      shape.push_back(all[d]);
      parts.push_back(from[d]);
      continue;
    }
    for (const SizePart& part : from[d]) {
      apart.push_back(shape.size());
      shape.push_back(part.most);
      parts.push_back({part});
    }
  }
  const ValueId y = c.reshape(x, shape);
  rule.sizes.set_parts(y, std::move(parts));
  dims = std::move(apart);
  return y;
}

ValueId reduce_run(SizeRule& rule, const std::string& type, ValueId x,
                   const std::vector<size_t>& dims, bool keep) {
  ExpandContext& c = rule.c;
  std::vector<int64_t> axes;
  std::vector<bool> is_reduced(c.shape_of(x).size(), false);
  for (const size_t d : dims) {
    axes.push_back(static_cast<int64_t>(d));
    is_reduced[d] = true;
  }
  const ShapeParts parts = parts_of_reduced(rule, x, is_reduced, keep);
  ValueId y = kNoValue;
  if (is_in_turn(rule, type, x, dims)) {
    y = reduced_in_turn(rule, type, x, dims);
    if (!keep) y = c.add("Squeeze", {y, c.integers(axes)});
  } else {
    const double neutral = neutral_in(type, c.dtype_of(x));
    y = c.reduce(type.c_str(), rule.sizes.filled(c, x, dims, neutral), axes, keep);
  }
  rule.sizes.set_parts(y, parts);
  return y;
}

ValueId mean_of(SizeRule& rule, ValueId x, const std::vector<size_t>& dims, bool keep) {
  ExpandContext& c = rule.c;
  ValueId count = kNoValue;
  for (const size_t d : dims) {
    const ValueId extent = rule.sizes.extent_of(c, rule.sizes.parts_of(x)[d]);
    count = count == kNoValue ? extent : c.binary("Mul", count, extent);
  }
  const ValueId sum = reduce_run(rule, "ReduceSum", x, dims, keep);
  return c.binary("Div", sum, c.cast(count, c.dtype_of(x)));
}

ValueId widened(SizeRule& rule, ValueId x) {
  const DType dtype = rule.c.dtype_of(x);
  if (!is_float(dtype) || dtype == DType::kF64 || dtype == DType::kF32) return x;
  const ValueId wide = rule.c.cast(x, DType::kF32);
  rule.sizes.set_parts(wide, rule.sizes.parts_of(x));
  return wide;
}

void build_mean(SizeRule& rule, ValueId x, const std::vector<size_t>& dims, bool keep) {
  const ValueId mean = mean_of(rule, widened(rule, x), dims, keep);
  rule.c.result(0, rule.c.cast(mean, rule.c.dtype_of(x)));
  rule.replaced = true;
}

std::span<const SizeRuleOf> size_rules_of_reductions() { return kRules; }

}  // namespace hone::graph
