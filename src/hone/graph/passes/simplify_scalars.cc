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
  bypass_node(site, x);
  return true;
}

// Returns whether a constant is a zero that may be added: any integer zero, but for floats only -0,
// as -0 + 0 is +0. It may be subtracted if its negative may be added.
bool is_neutral_zero(const Value& value, bool subtracted) {
  if (uniform_constant(value) != 0) return false;
  for (int64_t i = 0; is_float(value.dtype) && i < value.constant->size(); ++i) {
    if (std::signbit(value.constant->at(i)) == subtracted) return false;
  }
  return true;
}

// x * 1, x + 0, x - 0, x / 1, x to the power of 1
Result<bool> neutral_constant(const RewriteSite& site) {
  const std::string& type = site.node().type;
  const bool adds = type == "Add", subtracts = type == "Sub", commutes = adds || type == "Mul";
  if (!commutes && !subtracts && type != "Div" && type != "Pow") return false;
  const auto is_neutral = [&](size_t i) {
    if (adds || subtracts) return is_neutral_zero(site.operand(i), subtracts);
    return uniform_constant(site.operand(i)) == 1;
  };
  if (is_neutral(1)) return pass_through(site, site.node().inputs[0]);
  if (commutes && is_neutral(0)) return pass_through(site, site.node().inputs[1]);
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
  HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) { return c.binary("Mul", x, x); }));
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
  HONE_RETURN_IF_ERROR(
      replace_node(site, [&](ExpandContext& c) { return c.binary("Mul", x, 1 / *divisor); }));
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

// Two constants of which so little is left when they meet are there to round: (x + 2^23) - 2^23.
constexpr double kMostCancelled = 256;

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
  for (int64_t i = 0; i < combined.size(); ++i) {
    const double other = combined.at(i);
    combined.set(i, multiplies ? other * *one : other + *one);
    const double both = combined.at(i);
    // Kept apart are constants that overflow or vanish together, and a term that is added to
    // round and then taken away.
    if (std::isinf(both) && std::isfinite(other) && std::isfinite(*one)) return false;
    if (multiplies && both == 0 && other != 0 && *one != 0) return false;
    if (!multiplies && std::abs(both) < std::abs(other) / kMostCancelled) return false;
  }
  const std::string type = node.type;
  HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) {
    return c.add(type.c_str(), {inner.x, c.constant(std::move(combined))});
  }));
  return true;
}

}  // namespace

std::span<const Rule> scalar_rules() {
  static constexpr Rule kRules[] = {{"neutral_constant", neutral_constant},
                                    {"double_negation", double_negation},
                                    {"square", square},
                                    {"division_by_power_of_two", division_by_power_of_two},
                                    {"constants_meet", constants_meet}};
  return kRules;
}

}  // namespace hone::graph
