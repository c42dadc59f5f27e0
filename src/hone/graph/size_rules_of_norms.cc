// Rules for shapes that vary, of operators that normalize.
#include <algorithm>
#include <limits>

#include "hone/graph/size_follower.h"

namespace hone::graph {
namespace {

// The dimensions along which a node normalizes: from its axis on.
std::vector<size_t> normalized_dims(const SizeRule& rule, int64_t otherwise) {
  const size_t rank = rule.c.shape_of(rule.node.inputs[0]).size();
  std::vector<size_t> dims;
  for (size_t d = axis_of(rule, otherwise); d < rank; ++d) dims.push_back(d);
  return dims;
}

// The largest element is one of the run's.
Status follow_hardmax(SizeRule& rule) {
  std::vector<size_t> dims = normalized_dims(rule, rule.c.opset() < 13 ? 1 : -1);
  if (rule.c.opset() >= 13) dims.resize(1);
  const ValueId x = rule.node.inputs[0];
  rule.sizes.set_parts(rule.node.outputs[0], rule.sizes.parts_of(x));
  rule.node.inputs[0] =
      rule.sizes.filled(rule.c, x, dims, -std::numeric_limits<double>::infinity());
  return ok_status();
}

// Scale and bias have elements where the data has some, or one for all: what varies along a fixed
// dimension would be one of these at some sizes.
Status check_parameters(const SizeRule& rule) {
  const ShapeParts parts = rule.sizes.parts_of(rule.node.inputs[0]);
  for (size_t i = 1; i < rule.node.inputs.size(); ++i) {
    if (!rule.node.has_input(i)) continue;
    const ShapeParts own = rule.sizes.parts_of(rule.node.inputs[i]);
    for (size_t d = 0; d < own.size(); ++d) {
      const size_t in_data = parts.size() - own.size() + d;
      DimParts shared = parts[in_data];
      if (rule.sizes.varies(rule.node.inputs[i], d) &&
          !rule.sizes.varies(rule.node.inputs[0], in_data))
        return rule.c.unsupported(
            "operand {}, a parameter, varies along dimension {}, which does not", i, in_data);
      if (rule.c.shape_of(rule.node.inputs[i])[d] != 1)
        HONE_RETURN_IF_ERROR(join_parts(rule, shared, own[d]));
    }
  }
  return ok_status();
}

bool has_single_parameters(const SizeRule& rule) {
  for (size_t i = 1; i < rule.node.inputs.size(); ++i)
    if (rule.node.has_input(i) && num_elements(rule.c.shape_of(rule.node.inputs[i])) != 1)
      return false;
  return true;
}

// Rows that do not vary are independent; means of others are those of what a run has.
Status follow_norm(SizeRule& rule) {
  ExpandContext& c = rule.c;
  std::vector<size_t> dims = normalized_dims(rule, -1);
  const ValueId x = rule.node.inputs[0], out = rule.node.outputs[0];
  const ShapeParts of_x = rule.sizes.parts_of(x);
  HONE_RETURN_IF_ERROR(check_parameters(rule));
  rule.sizes.set_parts(out, of_x);
  if (std::none_of(dims.begin(), dims.end(), [&](size_t d) { return rule.sizes.varies(x, d); }))
    return ok_status();
  const double epsilon = static_cast<double>(rule.node.attributes.number("epsilon", 1e-5F));
  ValueId y = widened(rule, x);
  // With one dimension for each part, kernels need no views between them.
  if (has_single_parameters(rule)) y = with_parts_apart(rule, y, dims);
  const ShapeParts parts = rule.sizes.parts_of(y);
  if (rule.node.type == "LayerNormalization") {
    y = c.binary("Sub", y, mean_of(rule, y, dims, true));
    rule.sizes.set_parts(y, parts);
  }
  const ValueId square = c.binary("Mul", y, y);
  rule.sizes.set_parts(square, parts);
  const ValueId variance = mean_of(rule, square, dims, true);
  y = c.binary("Div", y, c.add("Sqrt", {c.binary("Add", variance, epsilon)}));
  const DType type = c.dtype_of(out);
  y = c.binary("Mul", c.cast(y, type), c.cast(rule.node.inputs[1], type));
  if (rule.node.has_input(2)) y = c.binary("Add", y, c.cast(rule.node.inputs[2], type));
  c.result(0, c.reshape(y, c.shape_of(x)));
  rule.sizes.set_parts(out, of_x);
  rule.replaced = true;
  return ok_status();
}

// It sums the squares of neighbouring channels.
Status follow_lrn(SizeRule& rule) {
  ValueId& x = rule.node.inputs[0];
  HONE_RETURN_IF_ERROR(make_contiguous(rule, x, 1));
  rule.sizes.set_parts(rule.node.outputs[0], rule.sizes.parts_of(x));
  x = rule.sizes.filled(rule.c, x, {1}, 0);
  return ok_status();
}

// A matrix has the determinant of the same one with a unit matrix behind it.
Status follow_det(SizeRule& rule) {
  ExpandContext& c = rule.c;
  ValueId& x = rule.node.inputs[0];
  const size_t column = c.shape_of(x).size() - 1, row = column - 1;
  for (const size_t d : {row, column}) HONE_RETURN_IF_ERROR(make_contiguous(rule, x, d));
  const ShapeParts parts = rule.sizes.parts_of(x);
  DimParts sides;
  for (const size_t d : {row, column}) HONE_RETURN_IF_ERROR(join_parts(rule, sides, parts[d]));
  if (rule.sizes.varies(x, row)) {
    const int64_t most = c.shape_of(x)[row];
    const ValueId unit = constant_by(c, c.dtype_of(x), {most, most},
                                     [&](int64_t i) { return i / most == i % most ? 1.0 : 0.0; });
    const ValueId extent = rule.sizes.extent_of(c, sides);
    const ValueId inside = c.binary("Less", numbers_from_0(c, most), extent);
    const ValueId both = c.binary("And", c.reshape(inside, {most, 1}), inside);
    x = c.add("Where", {both, x, unit});
    rule.sizes.set_parts(x, parts);
  }
  rule.sizes.set_parts(rule.node.outputs[0],
                       {parts.begin(), parts.begin() + static_cast<long>(row)});
  return ok_status();
}

constexpr SizeRuleOf kRules[] = {
    {"Det", follow_det},
    {"Hardmax", follow_hardmax},
    {"LayerNormalization", follow_norm},
    {"RMSNormalization", follow_norm},
    {"LRN", follow_lrn},
};

}  // namespace

std::span<const SizeRuleOf> size_rules_of_norms() { return kRules; }

}  // namespace hone::graph
