// Activations as products and sums: Gelu, Swish, HardSwish, Mish, and the parts they are made of.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "hone/graph/passes/match.h"
#include "hone/graph/passes/patterns.h"

namespace hone::graph {
namespace {

// The node becomes an operator of `x` alone.
Result<bool> become(const RewriteSite& site, const Match& match, ValueId x, const char* type,
                    NamedAttributes attributes = {}) {
  if (!match.closed() || match.value(x).shape != site.result().shape) return false;
  HONE_RETURN_IF_ERROR(
      replace_node(site, [&](ExpandContext& c) { return c.add(type, {x}, attributes); }));
  return true;
}

bool computes_floats(const RewriteSite& site, std::initializer_list<std::string_view> types) {
  return is_float(site.result().dtype) &&
         std::find(types.begin(), types.end(), site.node().type) != types.end();
}

// 1 / (1 + exp(-x))
Result<bool> sigmoid(const RewriteSite& site) {
  if (!computes_floats(site, {"Div", "Reciprocal"})) return false;
  Match match(site);
  const Product product = match.product(match.root());
  double one = 0;
  if (!product.over.empty() || product.under.size() != 1 || product.scale != 1) return false;
  const ValueId power = match.operand_of(match.plus_constant(product.under[0], &one), "Exp");
  if (power == kNoValue || one != 1) return false;
  if (const ValueId x = match.operand_of(power, "Neg"); x != kNoValue)
    return become(site, match, x, "Sigmoid");
  const Product negated = match.product(power);
  if (negated.over.size() != 1 || !negated.under.empty() || negated.scale != -1) return false;
  return become(site, match, negated.over[0], "Sigmoid");
}

// log(1 + exp(x))
Result<bool> softplus(const RewriteSite& site) {
  if (!computes_floats(site, {"Log"})) return false;
  Match match(site);
  double one = 0;
  const ValueId x = match.operand_of(match.plus_constant(site.node().inputs[0], &one), "Exp");
  if (x == kNoValue || one != 1) return false;
  return become(site, match, x, "Softplus");
}

// The value whose `f` is the other of two factors: x in x * f(x) * scale.
struct Gated {
  ValueId x = kNoValue, gate = kNoValue;
};
std::vector<Gated> gated(const Product& product) {
  if (product.over.size() != 2 || !product.under.empty()) return {};
  return {{product.over[0], product.over[1]}, {product.over[1], product.over[0]}};
}

// x * sigmoid(alpha * x)
Result<bool> swish(const RewriteSite& site) {
  if (!computes_floats(site, {"Mul"})) return false;
  Match match(site);
  const Product product = match.product(match.root());
  for (const auto& [x, gate] : gated(product)) {
    const ValueId inner = match.operand_of(gate, "Sigmoid");
    if (inner == kNoValue || product.scale != 1) continue;
    if (inner == x) return become(site, match, x, "Swish");
    const Product scaled = match.product(inner);
    if (scaled.over != std::vector{x} || !scaled.under.empty()) continue;
    return become(site, match, x, "Swish", {{"alpha", static_cast<float>(scaled.scale)}});
  }
  return false;
}

// 0.5 * x * (1 + erf(x / sqrt(2))), 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
bool is_gelu_tanh(Match& match, ValueId inner, ValueId x) {
  const double scale = std::sqrt(2 / std::numbers::pi);
  Product outer = match.product(inner);
  if (!outer.under.empty() || !Match::near(outer.scale, scale)) return false;
  double one = 0;
  // The polynomial may be written x (1 + 0.044715 x^2).
  if (outer.take(x)) {
    if (outer.over.size() != 1) return false;
    const ValueId square = match.plus_constant(outer.over[0], &one);
    if (square == kNoValue || one != 1) return false;
    const Product factors = match.product(square);
    return factors.over == std::vector{x, x} && factors.under.empty() &&
           Match::near(factors.scale, 0.044715);
  }
  if (outer.over.size() != 1) return false;
  Sum terms = match.sum(outer.over[0]);
  if (terms.plus.size() != 2 || !terms.minus.empty() || terms.offset != 0) return false;
  if (!Product::remove(terms.plus, x)) return false;
  const Product cube = match.product(terms.plus[0]);
  return cube.over == std::vector{x, x, x} && cube.under.empty() &&
         Match::near(cube.scale, 0.044715);
}

Result<bool> gelu(const RewriteSite& site) {
  if (!computes_floats(site, {"Mul", "Div"})) return false;
  Match match(site);
  const Product product = match.product(match.root());
  for (const auto& [x, gate] : gated(product)) {
    double one = 0;
    const ValueId curve = match.plus_constant(gate, &one);
    if (curve == kNoValue || one != 1 || !Match::near(product.scale, 0.5)) continue;
    const ValueId by_erf = match.operand_of(curve, "Erf");
    if (by_erf != kNoValue && match.is_scaled(by_erf, x, std::sqrt(0.5)))
      return become(site, match, x, "Gelu");
    const ValueId by_tanh = match.operand_of(curve, "Tanh");
    if (by_tanh != kNoValue && is_gelu_tanh(match, by_tanh, x))
      return become(site, match, x, "Gelu", {{"approximate", std::string("tanh")}});
  }
  return false;
}

// The bounds of a Clip with constants.
std::optional<std::pair<double, double>> bounds(const RewriteSite& site, const Node& clip) {
  const auto bound = [&](size_t i, const char* name) -> std::optional<double> {
    if (clip.has_input(i)) return uniform_constant(site.graph.value(clip.inputs[i]));
    const float* attribute = clip.attributes.find<float>(name);
    return attribute == nullptr ? std::nullopt : std::optional<double>(*attribute);
  };
  const auto low = bound(1, "min"), high = bound(2, "max");
  if (!low || !high) return std::nullopt;
  return std::pair{*low, *high};
}

// x in clip(x + 3, 0, 6); kNoValue if it is none.
ValueId clipped_shift(const RewriteSite& site, Match& match, ValueId id) {
  const Node* clip = match.made_by(id, "Clip");
  double three = 0;
  if (clip == nullptr || bounds(site, *clip) != std::pair{0.0, 6.0}) return kNoValue;
  const ValueId x = match.plus_constant(clip->inputs[0], &three);
  return three == 3 ? x : kNoValue;
}

// clip(x + 3, 0, 6) / 6
Result<bool> hard_sigmoid(const RewriteSite& site) {
  if (!computes_floats(site, {"Mul", "Div"})) return false;
  Match match(site);
  const Product product = match.product(match.root());
  if (product.over.size() != 1 || !product.under.empty() || !Match::near(product.scale, 1.0 / 6))
    return false;
  const ValueId x = clipped_shift(site, match, product.over[0]);
  if (x == kNoValue) return false;
  return become(site, match, x, "HardSigmoid", {{"alpha", 1.0f / 6}, {"beta", 0.5f}});
}

// x * hard_sigmoid(x), x * clip(x + 3, 0, 6) / 6
Result<bool> hard_swish(const RewriteSite& site) {
  if (!computes_floats(site, {"Mul", "Div"})) return false;
  Match match(site);
  const Product product = match.product(match.root());
  for (const auto& [x, gate] : gated(product)) {
    if (const Node* sigmoid = match.made_by(gate, "HardSigmoid");
        sigmoid != nullptr && sigmoid->inputs[0] == x && product.scale == 1 &&
        Match::near(sigmoid->attributes.number("alpha", 0.2f), 1.0 / 6) &&
        Match::near(sigmoid->attributes.number("beta", 0.5f), 0.5)) {
      return become(site, match, x, "HardSwish");
    }
    if (Match::near(product.scale, 1.0 / 6) && clipped_shift(site, match, gate) == x)
      return become(site, match, x, "HardSwish");
  }
  return false;
}

// x * tanh(softplus(x))
Result<bool> mish(const RewriteSite& site) {
  if (!computes_floats(site, {"Mul"})) return false;
  Match match(site);
  const Product product = match.product(match.root());
  for (const auto& [x, gate] : gated(product)) {
    const ValueId inner = match.operand_of(gate, "Tanh");
    if (inner != kNoValue && product.scale == 1 && match.operand_of(inner, "Softplus") == x)
      return become(site, match, x, "Mish");
  }
  return false;
}

}  // namespace

std::span<const Rule> activation_patterns() {
  static constexpr Rule kRules[] = {
      {"sigmoid", sigmoid},           {"softplus", softplus},     {"swish", swish}, {"gelu", gelu},
      {"hard_sigmoid", hard_sigmoid}, {"hard_swish", hard_swish}, {"mish", mish}};
  return kRules;
}

}  // namespace hone::graph
