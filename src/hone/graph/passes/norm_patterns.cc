// Normalisations along rows, and Softmax, from reductions and elementwise operators.
#include <algorithm>

#include "hone/graph/passes/match.h"
#include "hone/graph/passes/patterns.h"

namespace hone::graph {
namespace {

bool are_last(const std::vector<int64_t>& axes, size_t rank) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != static_cast<int64_t>(rank - axes.size() + i)) return false;
  }
  return !axes.empty();
}

// A small positive constant is added to `id` before the root is taken: what it is added to.
ValueId plus_epsilon(Match& match, ValueId id, float* epsilon) {
  double constant = 0;
  const ValueId of = id == kNoValue ? kNoValue : match.plus_constant(id, &constant);
  *epsilon = static_cast<float>(constant);
  return constant > 0 && constant < 0.1 ? of : kNoValue;
}

// x in mean(x * x) over the last dimensions `axes`.
ValueId mean_square(Match& match, ValueId id, std::vector<int64_t>* axes) {
  const ValueId square = id == kNoValue ? kNoValue : match.reduced(id, "ReduceMean", axes);
  if (square == kNoValue) return kNoValue;
  const Product factors = match.product(square);
  if (factors.over.size() != 2 || factors.over[0] != factors.over[1] || !factors.under.empty() ||
      factors.scale != 1)
    return kNoValue;
  return are_last(*axes, match.value(square).shape.size()) ? factors.over[0] : kNoValue;
}

ValueId unit_scale(ExpandContext& c, ValueId x) {
  Tensor one(c.dtype_of(x), {1});
  one.set(0, 1);
  return c.constant(std::move(one));
}

// d / sqrt(mean(d * d) + epsilon), with d = x - mean(x) or, for the root mean square, d = x.
Result<bool> normalized(const RewriteSite& site) {
  const std::string& type = site.node().type;
  if (!is_float(site.result().dtype) || (type != "Div" && type != "Mul")) return false;
  Match match(site);
  Product product = match.product(match.root());
  if (product.scale != 1) return false;
  float epsilon = 0;
  std::vector<int64_t> axes;
  const ValueId root = match.take_inverse_root(product);
  const ValueId d = mean_square(match, plus_epsilon(match, root, &epsilon), &axes);
  if (d == kNoValue || product.over != std::vector{d} || !product.under.empty()) return false;
  if (match.value(d).shape != site.result().shape) return false;
  const int64_t axis = axes.front();
  // A difference from the mean is LayerNormalization's, if nothing else needs the difference.
  Match centred = match;
  std::vector<int64_t> mean_axes;
  if (const Node* sub = centred.made_by(d, "Sub");
      sub != nullptr &&
      centred.reduced(sub->inputs[1], "ReduceMean", &mean_axes) == sub->inputs[0] &&
      mean_axes == axes && centred.closed()) {
    const ValueId x = sub->inputs[0];
    HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) {
      return c.add("LayerNormalization", {x, unit_scale(c, x)},
                   {{"axis", axis}, {"epsilon", epsilon}});
    }));
    return true;
  }
  if (!match.closed()) return false;
  HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) {
    return c.add("RMSNormalization", {d, unit_scale(c, d)}, {{"axis", axis}, {"epsilon", epsilon}});
  }));
  return true;
}

// The constant operand of a Mul or Add by which the result of `norm` is scaled or shifted, per
// element of a row; kNoValue if there is none.
ValueId row_constant(const RewriteSite& site, size_t norm) {
  const ValueId constant = site.node().inputs[1 - norm];
  const Value& value = site.graph.value(constant);
  const Value& data = site.operand(norm);
  if (!value.constant || value.dtype != data.dtype || data.shape != site.result().shape)
    return kNoValue;
  const auto rank = static_cast<int64_t>(data.shape.size());
  const int64_t axis =
      *normalize_axis(site.maker(site.node().inputs[norm])->attributes.integer("axis", -1), rank);
  const auto own = static_cast<int64_t>(value.shape.size());
  for (int64_t d = 0; d < own - (rank - axis); ++d) {
    if (value.shape[static_cast<size_t>(d)] != 1) return kNoValue;
  }
  return constant;
}

// A Mul or Add after a normalisation becomes its scale or bias.
Result<bool> scaled_norm(const RewriteSite& site) {
  const bool scales = site.node().type == "Mul";
  if (!scales && site.node().type != "Add") return false;
  for (const size_t i : {0, 1}) {
    const Node* norm = site.sole_maker(site.node().inputs[i]);
    if (norm == nullptr || norm->outputs.size() != 1) continue;
    const bool layer = norm->type == "LayerNormalization";
    if (!layer && (norm->type != "RMSNormalization" || !scales)) continue;
    const ValueId constant = row_constant(site, i);
    if (constant == kNoValue) continue;
    if (norm->has_input(2)) continue;
    if (scales && uniform_constant(site.graph.value(norm->inputs[1])) != 1) continue;
    const ValueId x = norm->inputs[0], scale = scales ? constant : norm->inputs[1];
    const std::string type = norm->type;
    const NamedAttributes attributes = {{"axis", norm->attributes.integer("axis", -1)},
                                        {"epsilon", norm->attributes.number("epsilon", 1e-5f)}};
    HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) {
      std::vector<ValueId> operands = {x, scale};
      if (!scales) operands.push_back(constant);
      return c.add(type.c_str(), operands, attributes);
    }));
    return true;
  }
  return false;
}

// exp(x) / sum(exp(x)), as a rule with max(x) subtracted from x.
Result<bool> softmax(const RewriteSite& site) {
  if (!is_float(site.result().dtype) || site.node().type != "Div") return false;
  Match match(site);
  const ValueId powers = site.node().inputs[0];
  std::vector<int64_t> axes, max_axes;
  if (match.reduced(site.node().inputs[1], "ReduceSum", &axes) != powers || axes.size() != 1)
    return false;
  ValueId x = match.operand_of(powers, "Exp");
  if (x == kNoValue || match.value(x).shape != site.result().shape) return false;
  if (const Node* sub = site.maker(x); sub != nullptr && sub->type == "Sub") {
    Match shifted = match;
    if (shifted.made_by(x, "Sub") != nullptr &&
        shifted.reduced(sub->inputs[1], "ReduceMax", &max_axes) == sub->inputs[0] &&
        max_axes == axes) {
      match = shifted;
      x = sub->inputs[0];
    }
  }
  if (!match.closed()) return false;
  HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) {
    return c.add("Softmax", {x}, {{"axis", axes[0]}});
  }));
  return true;
}

// log(softmax(x))
Result<bool> log_softmax(const RewriteSite& site) {
  if (site.node().type != "Log") return false;
  const Node* inner = site.sole_maker(site.node().inputs[0]);
  const int opset = inner == nullptr || inner->opset == 0 ? site.graph.opset : inner->opset;
  if (inner == nullptr || inner->type != "Softmax" || opset < 13) return false;
  const ValueId x = inner->inputs[0];
  const int64_t axis = inner->attributes.integer("axis", -1);
  HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) {
    return c.add("LogSoftmax", {x}, {{"axis", axis}});
  }));
  return true;
}

}  // namespace

std::span<const Rule> norm_patterns() {
  static constexpr Rule kRules[] = {{"normalized", normalized},
                                    {"scaled_norm", scaled_norm},
                                    {"softmax", softmax},
                                    {"log_softmax", log_softmax}};
  return kRules;
}

}  // namespace hone::graph
