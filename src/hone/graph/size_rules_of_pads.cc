// Rules for shapes that vary, of Pad.
#include "hone/graph/integer_at.h"
#include "hone/graph/size_follower.h"

namespace hone::graph {
namespace {

// What is added at both ends of each dimension, or taken away if it is negative.
struct Pads {
  Shape low, high;
};

Result<Pads> pads_of(const InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const auto pads, c.integers_or_attribute(1, "pads"));
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < c.rank(0); ++d) axes.push_back(d);
  if (c.has(3)) {
    HONE_ASSIGN_OR_RETURN(axes, c.integers(3, "axes"));
  }
  Pads found{Shape(c.shape(0).size(), 0), Shape(c.shape(0).size(), 0)};
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<size_t>(*normalize_axis(axes[i], c.rank(0)));
    found.low[d] = (*pads)[i];
    found.high[d] = (*pads)[axes.size() + i];
  }
  return found;
}

// The padding at all sizes: before the first element it is the same, and behind the last one it may
// follow from the sizes, as where an extent is rounded up.
struct PadsOfRuns {
  Shape low;
  std::vector<bool> any, takes_away;  // at some size

  void add(const Pads& pads) {
    for (size_t d = 0; d < low.size(); ++d) {
      any[d] = any[d] || pads.low[d] != 0 || pads.high[d] != 0;
      takes_away[d] = takes_away[d] || pads.low[d] < 0 || pads.high[d] < 0;
    }
  }
};

Result<PadsOfRuns> pads_of_runs(SizeRule& rule) {
  HONE_ASSIGN_OR_RETURN(const Pads most, pads_of(rule.c));
  const size_t rank = most.low.size();
  PadsOfRuns pads{most.low, std::vector<bool>(rank, false), std::vector<bool>(rank, false)};
  pads.add(most);
  for (const SizeProbe& probe : rule.sizes.probes()) {
    const Node* twin = probe.producer_of_twin(rule.sizes.origin(rule.node.outputs[0]));
    if (twin == nullptr || twin->type != rule.node.type) continue;
    HONE_ASSIGN_OR_RETURN(const Pads own,
                          pads_of(InferContext(const_cast<Graph&>(probe.graph), *twin)));
    if (own.low != most.low)
      return rule.c.unsupported("operand 1 ('{}') has other elements at other sizes",
                                rule.sizes.graph().value(rule.node.inputs[1]).name);
    pads.add(own);
  }
  return pads;
}

// Which of n elements stand where a padded dimension has them: `from` is 0 where its first one is.
ValueId places_in(ExpandContext& c, const std::string& mode, ValueId from, ValueId n) {
  const ValueId last = c.binary("Sub", n, 1.0);
  if (mode == "edge") return c.binary("Max", c.binary("Min", from, last), 0.0);
  if (mode == "wrap") return c.binary("Mod", from, c.binary("Max", n, 1.0));
  // Reflected at both ends, again and again where the padding is longer than the data.
  const ValueId period = c.binary("Max", c.binary("Mul", last, 2.0), 1.0);
  const ValueId phase = c.binary("Mod", from, period);
  return c.binary("Min", phase, c.binary("Sub", period, phase));
}

// Elements of the run, repeated at its ends: they are gathered from their places.
Status follow_repeating_pad(SizeRule& rule, const std::string& mode, const PadsOfRuns& pads) {
  ExpandContext& c = rule.c;
  const ValueId out = rule.node.outputs[0];
  ShapeParts parts = rule.sizes.parts_of(rule.node.inputs[0]);
  ValueId x = rule.node.inputs[0];
  for (size_t d = 0; d < parts.size(); ++d) {
    if (!pads.any[d]) continue;
    if (pads.takes_away[d])
      return c.unsupported("padding of a value whose shape varies, which takes elements away");
    HONE_RETURN_IF_ERROR(make_contiguous(rule, x, d));
    const auto seen = rule.sizes.rounded_part(out, d, parts[d]);
    if (!seen) return c.unsupported("its extent {} does not follow from the sizes", d);
    const ValueId extent = rule.sizes.extent_of(c, parts[d]);
    const ValueId from =
        c.binary("Sub", numbers_from_0(c, c.shape_of(out)[d]), static_cast<double>(pads.low[d]));
    const ValueId places = places_in(c, mode, from, extent);
    // Elements that a run does not have may come from anywhere.
    const ValueId inside = c.binary("Min", places, static_cast<double>(c.shape_of(x)[d] - 1));
    x = c.add("Gather", {x, inside}, {{"axis", static_cast<int64_t>(d)}});
    parts[d] = {*seen};
  }
  c.result(0, x);
  rule.sizes.set_parts(out, std::move(parts));
  rule.replaced = true;
  return ok_status();
}

// Padding begins where a run's elements end: there are the same numbers.
Status follow_pad(SizeRule& rule) {
  const ValueId out = rule.node.outputs[0];
  const std::string mode = rule.node.attributes.text("mode", "constant");
  const Tensor* value = rule.node.has_input(2) ? rule.c.constant_of(rule.node.inputs[2]) : nullptr;
  if (mode == "constant" && rule.node.has_input(2) && value == nullptr)
    return rule.c.unsupported("padding of a value whose shape varies, other than by a constant");
  for (size_t i = 2; i < rule.node.inputs.size(); ++i) {
    const ValueId id = rule.node.inputs[i];
    if (id != kNoValue && rule.c.constant_of(id) != nullptr &&
        rule.sizes.kind_of_constant(id) != ConstantKind::kFixed)
      return rule.c.unsupported("operand {} ('{}') has other elements at other sizes", i,
                                rule.sizes.graph().value(id).name);
  }
  HONE_ASSIGN_OR_RETURN(const PadsOfRuns pads, pads_of_runs(rule));
  if (mode != "constant") return follow_repeating_pad(rule, mode, pads);
  std::vector<size_t> all;
  ShapeParts parts = rule.sizes.parts_of(rule.node.inputs[0]);
  for (size_t d = 0; d < parts.size(); ++d) {
    // The batch is rarely padded, and rows that are not there need no fill.
    if (!pads.any[d]) continue;
    HONE_RETURN_IF_ERROR(make_contiguous(rule, rule.node.inputs[0], d));
    const auto seen = rule.sizes.rounded_part(out, d, rule.sizes.parts_of(rule.node.inputs[0])[d]);
    if (!seen) return rule.c.unsupported("its extent {} does not follow from the sizes", d);
    parts[d] = {*seen};
    all.push_back(d);
  }
  const double fill = value != nullptr && value->size() > 0
                          ? value->at(0)
                          : rule.node.attributes.number("value", 0);
  rule.node.inputs[0] = rule.sizes.filled(rule.c, rule.node.inputs[0], all, fill);
  rule.sizes.set_parts(out, std::move(parts));
  return ok_status();
}

constexpr SizeRuleOf kRules[] = {{"Pad", follow_pad, 0b1110}};

}  // namespace

std::span<const SizeRuleOf> size_rules_of_pads() { return kRules; }

}  // namespace hone::graph
