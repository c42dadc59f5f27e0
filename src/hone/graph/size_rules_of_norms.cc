// Rules for shapes that vary, of operators that normalize.
#include <algorithm>
#include <limits>

#include "hone/graph/size_follower.h"

namespace hone::graph {
namespace {

// The dimensions along which a node normalizes: from its axis on.
std::vector<size_t> normalized_dims(const SizeRule& rule, int64_t otherwise) {
  const int64_t rank = rule.c.rank_of(rule.node.inputs[0]);
  const int64_t axis = *normalize_axis(rule.node.attributes.integer("axis", otherwise), rank);
  std::vector<size_t> dims;
  for (int64_t d = axis; d < rank; ++d) dims.push_back(static_cast<size_t>(d));
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

// Rows that do not vary are independent; means of others are those of what a run has.
Status follow_norm(SizeRule& rule) {
  ExpandContext& c = rule.c;
  const std::vector<size_t> dims = normalized_dims(rule, -1);
  const ValueId x = rule.node.inputs[0], out = rule.node.outputs[0];
  const ShapeParts parts = rule.sizes.parts_of(x);
  HONE_RETURN_IF_ERROR(check_parameters(rule));
  rule.sizes.set_parts(out, parts);
  if (std::none_of(dims.begin(), dims.end(), [&](size_t d) { return rule.sizes.varies(x, d); }))
    return ok_status();
  const double epsilon = static_cast<double>(rule.node.attributes.number("epsilon", 1e-5F));
  ValueId y = widened(rule, x);
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
  c.result(0, y);
  rule.sizes.set_parts(out, parts);
  rule.replaced = true;
  return ok_status();
}

// It looks at neighbouring channels only.
Status follow_lrn(SizeRule& rule) {
  const ValueId x = rule.node.inputs[0];
  if (rule.sizes.varies(x, 1))
    return rule.c.unsupported("channels whose number varies from run to run");
  rule.sizes.set_parts(rule.node.outputs[0], rule.sizes.parts_of(x));
  return ok_status();
}

constexpr SizeRuleOf kRules[] = {
    {"Hardmax", follow_hardmax},
    {"LayerNormalization", follow_norm},
    {"RMSNormalization", follow_norm},
    {"LRN", follow_lrn},
};

}  // namespace

std::span<const SizeRuleOf> size_rules_of_norms() { return kRules; }

}  // namespace hone::graph
