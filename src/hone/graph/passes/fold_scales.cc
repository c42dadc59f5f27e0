// Scales and shifts per channel, written as elementwise operators with constants, that stand before
// or after a product.
#include <algorithm>

#include "hone/graph/passes/affine.h"
#include "hone/graph/passes/pass.h"

namespace hone::graph {
namespace {

// One value per channel of a constant that is broadcast to `data`; nullopt if it varies otherwise.
std::optional<std::vector<double>> per_channel(const Value& constant, const Value& data,
                                               size_t axis) {
  if (!constant.constant || constant.dtype != data.dtype) return std::nullopt;
  const auto channels = static_cast<size_t>(data.shape[axis]);
  if (const auto same = uniform_constant(constant)) return std::vector<double>(channels, *same);
  Shape wanted(data.shape.size() - axis, 1), own = constant.shape;
  wanted[0] = data.shape[axis];
  while (own.size() > wanted.size() && own[0] == 1) own.erase(own.begin());
  if (own != wanted) return std::nullopt;
  std::vector<double> values;
  for (int64_t i = 0; i < constant.constant->size(); ++i)
    values.push_back(constant.constant->at(i));
  return values;
}

// The scale and shift that a node applies to its operand `x` per channel of dimension `axis`.
struct Scaling {
  ValueId x = kNoValue;
  Affine affine;
};
std::optional<Scaling> scaling(const Graph& graph, const Node& node, ValueId x, size_t axis) {
  const bool multiplies = node.type == "Mul", divides = node.type == "Div";
  const bool adds = node.type == "Add", subtracts = node.type == "Sub";
  if (!multiplies && !divides && !adds && !subtracts) return std::nullopt;
  const size_t at = node.inputs[0] == x ? 0 : 1;
  if ((divides || subtracts) && at != 0) return std::nullopt;
  const Value& data = graph.value(x);
  if (graph.value(node.outputs[0]).shape != data.shape || axis >= data.shape.size())
    return std::nullopt;
  auto values = per_channel(graph.value(node.inputs[1 - at]), data, axis);
  if (!values) return std::nullopt;
  if (divides && std::count(values->begin(), values->end(), 0.0) > 0) return std::nullopt;
  Scaling result{x, {}};
  const size_t count = values->size();
  if (divides) {
    for (double& value : *values) value = 1 / value;
  }
  if (subtracts) {
    for (double& value : *values) value = -value;
  }
  const bool scales = multiplies || divides;
  result.affine.scale = scales ? *values : std::vector<double>(count, 1);
  result.affine.shift = scales ? std::vector<double>(count, 0) : *values;
  return result;
}

// product(x) * s + t
Result<bool> after_product(const RewriteSite& site) {
  if (site.node().inputs.size() != 2) return false;
  for (const ValueId x : site.node().inputs) {
    const Node* product = x == kNoValue ? nullptr : site.sole_maker(x);
    if (product == nullptr || !has_weights(site, *product)) continue;
    const auto found =
        scaling(site.graph, site.node(), x, channel_dimension(site.graph, *product, x));
    auto weights = found ? scaled_after(site, *product, found->affine) : std::nullopt;
    if (!weights) continue;
    HONE_RETURN_IF_ERROR(
        replace_by_product(site, *product, product->inputs[0], std::move(*weights)));
    return true;
  }
  return false;
}

// product(x * s + t)
Result<bool> before_product(const RewriteSite& site) {
  const Node& product = site.node();
  if (!has_weights(site, product)) return false;
  const ValueId data = product.inputs[0];
  const Node* node = site.sole_maker(data);
  if (node == nullptr || node->inputs.size() != 2) return false;
  const size_t axis = channel_dimension(site.graph, product, data);
  for (const ValueId x : node->inputs) {
    if (x == kNoValue || site.graph.value(x).constant) continue;
    const auto found = scaling(site.graph, *node, x, axis);
    auto weights = found ? scaled_before(site, product, found->affine) : std::nullopt;
    if (!weights) continue;
    HONE_RETURN_IF_ERROR(replace_by_product(site, product, x, std::move(*weights)));
    return true;
  }
  return false;
}

}  // namespace

Status fold_scales(Graph& graph) {
  static constexpr Rule kRules[] = {{"after_product", after_product},
                                    {"before_product", before_product}};
  return rewrite(graph, kRules);
}

}  // namespace hone::graph
