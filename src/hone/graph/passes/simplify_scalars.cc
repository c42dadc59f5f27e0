// Rules for elementwise operators with constants.
#include <algorithm>
#include <cmath>

#include "hone/graph/passes/simplify_rules.h"

namespace hone::graph {
namespace {

// Makes every reader of the node's result read operand `i` instead.
bool pass_through(const RewriteSite& site, ValueId x) {
  const Value& value = site.graph.value(x);
  if (value.shape != site.result().shape || value.dtype != site.result().dtype ||
      value.extents != site.result().extents)
    return false;
  site.graph.replace_uses(site.node().outputs[0], x);
  site.graph.nodes.erase(site.graph.nodes.begin() + static_cast<std::ptrdiff_t>(site.index));
  return true;
}

// x * 1, x + 0, x - 0, x / 1, x to the power of 1
Result<bool> neutral_constant(const RewriteSite& site) {
  const std::string& type = site.node().type;
  const bool commutes = type == "Mul" || type == "Add";
  if (!commutes && type != "Div" && type != "Sub" && type != "Pow") return false;
  const double neutral = type == "Add" || type == "Sub" ? 0 : 1;
  if (uniform_constant(site.operand(1)) == neutral)
    return pass_through(site, site.node().inputs[0]);
  if (commutes && uniform_constant(site.operand(0)) == neutral)
    return pass_through(site, site.node().inputs[1]);
  return false;
}

Result<bool> double_negation(const RewriteSite& site) {
  const std::string& type = site.node().type;
  if (type != "Neg" && type != "Not") return false;
  const Node* inner = site.maker(site.node().inputs[0]);
  return inner != nullptr && inner->type == type && pass_through(site, inner->inputs[0]);
}

Result<bool> square(const RewriteSite& site) {
  if (site.node().type != "Pow" || uniform_constant(site.operand(1)) != 2) return false;
  const ValueId x = site.node().inputs[0];
  if (site.graph.value(x).shape != site.result().shape) return false;
  HONE_RETURN_IF_ERROR(replace_node(site.graph, site.index,
                                    [&](ExpandContext& c) { return c.binary("Mul", x, x); }));
  return true;
}

// A division by a power of two is exact as a multiplication, which is faster.
Result<bool> division_by_power_of_two(const RewriteSite& site) {
  if (site.node().type != "Div" || !is_float(site.result().dtype)) return false;
  const auto divisor = uniform_constant(site.operand(1));
  int exponent = 0;
  if (!divisor || std::abs(std::frexp(*divisor, &exponent)) != 0.5 || std::abs(exponent) > 14)
    return false;
  const ValueId x = site.node().inputs[0];
  if (site.graph.value(x).shape != site.result().shape) return false;
  HONE_RETURN_IF_ERROR(replace_node(
      site.graph, site.index, [&](ExpandContext& c) { return c.binary("Mul", x, 1 / *divisor); }));
  return true;
}

// The constant operand of a commutative node and the other one.
struct WithConstant {
  ValueId x = kNoValue, constant = kNoValue;
};
WithConstant with_constant(const Graph& graph, const Node& node) {
  for (const size_t i : {0, 1}) {
    if (graph.value(node.inputs[i]).constant && !graph.value(node.inputs[1 - i]).constant)
      return {node.inputs[1 - i], node.inputs[i]};
  }
  return {};
}

// (x * a) * b, (x + a) + b: the constants meet, if one of them is the same for all elements.
Result<bool> constants_meet(const RewriteSite& site) {
  const Node& node = site.node();
  const bool multiplies = node.type == "Mul";
  if ((!multiplies && node.type != "Add") || !is_float(site.result().dtype)) return false;
  const WithConstant outer = with_constant(site.graph, node);
  const Node* below = outer.x == kNoValue ? nullptr : site.sole_maker(outer.x);
  if (below == nullptr || below->type != node.type) return false;
  const WithConstant inner = with_constant(site.graph, *below);
  if (inner.x == kNoValue) return false;
  const Value* many = &site.graph.value(outer.constant);
  auto one = uniform_constant(site.graph.value(inner.constant));
  if (!one) {
    many = &site.graph.value(inner.constant);
    one = uniform_constant(site.graph.value(outer.constant));
  }
  const Shape& whole = site.result().shape;
  if (!one || broadcast(site.graph.value(inner.x).shape, many->shape) != whole) return false;
  Tensor combined = many->constant->clone();
  for (int64_t i = 0; i < combined.size(); ++i)
    combined.set(i, multiplies ? combined.at(i) * *one : combined.at(i) + *one);
  const std::string type = node.type;
  HONE_RETURN_IF_ERROR(replace_node(site.graph, site.index, [&](ExpandContext& c) {
    return c.add(type.c_str(), {inner.x, c.constant(std::move(combined))});
  }));
  return true;
}

}  // namespace

std::span<const Rule> scalar_rules() {
  static constexpr Rule kRules[] = {neutral_constant, double_negation, square,
                                    division_by_power_of_two, constants_meet};
  return kRules;
}

}  // namespace hone::graph
