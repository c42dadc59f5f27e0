// Reshapes go behind elementwise operators, so that these can join the product before the reshape
// (exporters flatten [batch, row, k] to [batch * row, k] around every Gemm).
#include <algorithm>

#include "hone/graph/passes/simplify_rules.h"

namespace hone::graph {
namespace {

// Returns the shape of another operand if the result has shape `from` instead of `to`; nullopt if
// its elements would not be the same.
std::optional<Shape> shape_before(const Shape& operand, const Shape& from, const Shape& to) {
  if (num_elements(operand) == 1) return Shape(std::min(operand.size(), from.size()), 1);
  if (operand == to) return from;
  const bool is_row = num_elements(operand) == operand.back() && operand.back() == to.back();
  if (is_row && from.back() == to.back()) return Shape{operand.back()};
  return std::nullopt;
}

ValueId with_shape(ExpandContext& c, ValueId x, const Shape& shape) {
  if (x == kNoValue || c.shape_of(x) == shape) return x;
  if (const Tensor* constant = c.constant_of(x)) {
    return c.constant(constant->reshaped(shape));
  }
  return c.reshape(x, shape);
}

bool is_pointwise(const Node& node) {
  return node.op->kind == Kind::kElementwise && node.outputs.size() == 1 &&
         node.type != "BatchNormalization";
}

Result<bool> reshape_before_elementwise(const RewriteSite& site) {
  const Node& node = site.node();
  const Shape to = site.result().shape;
  if (!is_pointwise(node) || site.result().extents != kNoValue || num_elements(to) == 0)
    return false;
  for (const ValueId input : node.inputs) {
    if (input == kNoValue || site.graph.value(input).shape != to) continue;
    const Node* reshape = site.sole_maker(input);
    if (reshape == nullptr || reshape->type != "Reshape") continue;
    const ValueId x = reshape->inputs[0];
    const Node* product = site.maker(x);
    const Shape from = site.graph.value(x).shape;
    // Only to fewer dimensions: two products that meet would else pull at one another for ever.
    if (product == nullptr || from.empty() || from.size() >= to.size() ||
        site.graph.value(x).extents != kNoValue)
      continue;
    if (product->op->kind != Kind::kContraction && product->op->kind != Kind::kElementwise)
      continue;
    std::vector<std::optional<Shape>> shapes;
    for (const ValueId other : node.inputs) {
      shapes.push_back(other == kNoValue ? Shape{}
                                         : shape_before(site.graph.value(other).shape, from, to));
    }
    if (std::count(shapes.begin(), shapes.end(), std::nullopt) > 0) continue;
    const Node like = node;
    HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) {
      std::vector<ValueId> operands;
      for (size_t i = 0; i < like.inputs.size(); ++i) {
        const bool is_reshape = like.inputs[i] == input;
        operands.push_back(is_reshape ? x : with_shape(c, like.inputs[i], *shapes[i]));
      }
      return c.reshape(c.add_like(like, operands), to);
    }));
    return true;
  }
  return false;
}

}  // namespace

std::span<const Rule> reshape_rules() {
  static constexpr Rule kRules[] = {{"reshape_before_elementwise", reshape_before_elementwise}};
  return kRules;
}

}  // namespace hone::graph
