// Rules for shapes that vary, of operators that read windows: convolutions and pooling.
#include <algorithm>
#include <limits>

#include "hone/graph/size_follower.h"

namespace hone::graph {
namespace {

constexpr size_t kFirstSide = 2;  // dimensions behind the batch and the channels

// Windows begin where they begin at the largest size: the padding before the first element is the
// same. That behind the last one is what lies beyond the elements of a run.
Status check_padding(const SizeRule& rule) {
  if (rule.node.op->padding == nullptr) return ok_status();
  const Shape low = rule.node.op->padding(rule.sizes.graph(), rule.node).low;
  for (const SizeProbe& probe : rule.sizes.probes()) {
    const Node* twin = probe.producer_of_twin(rule.sizes.origin(rule.node.outputs[0]));
    if (twin == nullptr || twin->op->padding(probe.graph, *twin).low == low) continue;
    return rule.c.unsupported("its padding before the first element is another one at {}",
                              rule.sizes.text_of(probe.symbols));
  }
  return ok_status();
}

std::vector<size_t> sides_of(const SizeRule& rule) {
  std::vector<size_t> sides;
  for (size_t d = kFirstSide; d < rule.c.shape_of(rule.node.inputs[0]).size(); ++d)
    sides.push_back(d);
  return sides;
}

bool sides_vary(const SizeRule& rule) {
  const std::vector<size_t> sides = sides_of(rule);
  return std::any_of(sides.begin(), sides.end(),
                     [&](size_t d) { return rule.sizes.varies(rule.node.inputs[0], d); });
}

// The batch is that of operand 0, and sides follow from its sides.
Status set_window_parts(SizeRule& rule) {
  const ValueId x = rule.node.inputs[0];
  for (size_t i = 0; i < rule.node.inputs.size(); ++i) {
    for (size_t d = 0; rule.node.has_input(i) && d < rule.c.shape_of(rule.node.inputs[i]).size();
         ++d) {
      const bool may = i == 0 && d != 1;
      if (rule.sizes.varies(rule.node.inputs[i], d) && !may)
        return rule.c.unsupported(
            "dimension {} of operand {} varies from run to run: give one size for it (--shape)", d,
            i);
    }
  }
  for (const ValueId out : rule.node.outputs) {
    if (out == kNoValue) continue;
    ShapeParts parts = rule.sizes.parts_of(out);
    for (size_t d = 0; d < parts.size(); ++d) {
      if (d == 0) parts[d] = rule.sizes.parts_of(x)[d];
      if (d < kFirstSide || !sides_vary(rule)) continue;
      HONE_RETURN_IF_ERROR(check_contiguous(rule, x, d));
      const auto seen = rule.sizes.seen_part(out, d);
      if (!seen)
        return rule.c.unsupported("side {} of its result does not follow from the sizes", d);
      parts[d] = {*seen};
    }
    rule.sizes.set_parts(out, std::move(parts));
  }
  return ok_status();
}

Status follow_conv(SizeRule& rule) {
  HONE_RETURN_IF_ERROR(set_window_parts(rule));
  if (!sides_vary(rule)) return ok_status();
  HONE_RETURN_IF_ERROR(check_padding(rule));
  const Shape weights = rule.c.shape_of(rule.node.inputs[1]);
  const bool points = std::all_of(weights.begin() + kFirstSide, weights.end(),
                                  [](int64_t extent) { return extent == 1; });
  // What a window of one element reads is there.
  if (!points || rule.node.op->padding(rule.sizes.graph(), rule.node).any())
    rule.node.inputs[0] = rule.sizes.filled(rule.c, rule.node.inputs[0], sides_of(rule), 0);
  return ok_status();
}

Status follow_max_pool(SizeRule& rule) {
  HONE_RETURN_IF_ERROR(set_window_parts(rule));
  if (!sides_vary(rule)) return ok_status();
  const ValueId x = rule.node.inputs[0];
  if (!is_float(rule.c.dtype_of(x)))
    return rule.c.unsupported("integers whose sides vary from run to run");
  if (rule.node.outputs.size() > 1)
    return rule.c.unsupported("places of elements in data whose sides vary from run to run");
  HONE_RETURN_IF_ERROR(check_padding(rule));
  rule.node.inputs[0] =
      rule.sizes.filled(rule.c, x, sides_of(rule), -std::numeric_limits<double>::infinity());
  return ok_status();
}

// Where padding does not count, the sum of a window is divided by the number of its elements: both
// are averages in which padding and what is not there count as 0.
Status follow_average_pool(SizeRule& rule) {
  HONE_RETURN_IF_ERROR(set_window_parts(rule));
  if (!sides_vary(rule)) return ok_status();
  HONE_RETURN_IF_ERROR(check_padding(rule));
  if (rule.node.attributes.integer("ceil_mode", 0) != 0)
    return rule.c.unsupported("ceil_mode on sides that vary from run to run");
  ExpandContext& c = rule.c;
  const ValueId x = rule.node.inputs[0], out = rule.node.outputs[0];
  if (!rule.node.op->padding(rule.sizes.graph(), rule.node).any()) return ok_status();
  const ValueId given = rule.sizes.filled(c, x, sides_of(rule), 0);
  if (rule.node.attributes.integer("count_include_pad", 0) != 0) {
    rule.node.inputs[0] = given;
    return ok_status();
  }
  const Shape shape = c.shape_of(x);
  Shape one = shape;
  one[0] = one[1] = 1;
  Tensor ones(c.dtype_of(x), one);
  for (int64_t i = 0; i < ones.size(); ++i) ones.set(i, 1);
  const ValueId there = c.constant(std::move(ones));
  ShapeParts parts = rule.sizes.parts_of(x);
  for (size_t d = 0; d < kFirstSide; ++d) parts[d] = {{kNoForm, 1}};
  rule.sizes.set_parts(there, std::move(parts));
  Node pool = rule.node;
  pool.name.clear();
  pool.attributes.set("count_include_pad", int64_t{1});
  const ValueId sum = c.add_like(pool, {given});
  const ValueId count = c.add_like(pool, {rule.sizes.filled(c, there, sides_of(rule), 0)});
  const ShapeParts result = rule.sizes.parts_of(out);
  c.result(0, c.binary("Div", sum, count));
  rule.sizes.set_parts(out, result);
  rule.replaced = true;
  return ok_status();
}

Status follow_global_max_pool(SizeRule& rule) {
  ShapeParts parts = rule.sizes.parts_of(rule.node.outputs[0]);
  const ShapeParts from = rule.sizes.parts_of(rule.node.inputs[0]);
  for (size_t d = 0; d < kFirstSide; ++d) parts[d] = from[d];
  rule.node.inputs[0] = rule.sizes.filled(rule.c, rule.node.inputs[0], sides_of(rule),
                                          -std::numeric_limits<double>::infinity());
  rule.sizes.set_parts(rule.node.outputs[0], std::move(parts));
  return ok_status();
}

Status follow_global_average_pool(SizeRule& rule) {
  const ValueId out = rule.node.outputs[0];
  ShapeParts parts = rule.sizes.parts_of(out);
  const ShapeParts from = rule.sizes.parts_of(rule.node.inputs[0]);
  for (size_t d = 0; d < kFirstSide; ++d) parts[d] = from[d];
  if (sides_vary(rule)) build_mean(rule, rule.node.inputs[0], sides_of(rule), true);
  rule.sizes.set_parts(out, std::move(parts));
  return ok_status();
}

// Element i of a side is element i / repeats of the operand's.
Status follow_repeat(SizeRule& rule) {
  const ValueId x = rule.node.inputs[0], out = rule.node.outputs[0];
  ShapeParts parts = rule.sizes.parts_of(x);
  for (size_t d = 0; d < parts.size(); ++d) {
    if (rule.c.shape_of(out)[d] == rule.c.shape_of(x)[d]) continue;
    HONE_RETURN_IF_ERROR(check_contiguous(rule, x, d));
    const auto seen = rule.sizes.seen_part(out, d);
    if (!seen) return rule.c.unsupported("side {} of its result does not follow from the sizes", d);
    parts[d] = {*seen};
  }
  rule.sizes.set_parts(out, std::move(parts));
  return ok_status();
}

constexpr SizeRuleOf kRules[] = {
    {"Conv", follow_conv},
    {"hone.ConvInteger", follow_conv},
    {"MaxPool", follow_max_pool},
    {"AveragePool", follow_average_pool},
    {"GlobalAveragePool", follow_global_average_pool},
    {"GlobalMaxPool", follow_global_max_pool},
    {"hone.Repeat", follow_repeat},
};

}  // namespace

std::span<const SizeRuleOf> size_rules_of_windows() { return kRules; }

}  // namespace hone::graph
