// Rules for shapes that vary, of operators that rearrange dimensions.
#include <algorithm>

#include "hone/graph/passes/rewrite.h"
#include "hone/graph/size_follower.h"

namespace hone::graph {
namespace {

Status follow_transpose(SizeRule& rule) {
  const ShapeParts from = rule.sizes.parts_of(rule.node.inputs[0]);
  ShapeParts parts;
  for (const int64_t d : permutation_of(rule.sizes.graph(), rule.node))
    parts.push_back(from[static_cast<size_t>(d)]);
  rule.sizes.set_parts(rule.node.outputs[0], std::move(parts));
  return ok_status();
}

// Divides the parts of an operand, in their order, among the dimensions of another shape.
class Regrouping {
 public:
  Regrouping(SizeRule& rule, ValueId from, ValueId to) : rule_(rule), to_(to) {
    for (const DimParts& dim : rule.sizes.parts_of(from)) {
      for (const SizePart& part : dim) {
        if (part.form != kNoForm || part.most != 1) left_.push_back(part);
      }
    }
    std::reverse(left_.begin(), left_.end());
  }

  // Returns nullopt if a dimension would begin inside a part that cannot be divided.
  std::optional<ShapeParts> run() {
    const Shape shape = rule_.c.shape_of(to_);
    ShapeParts parts;
    for (size_t d = 0; d < shape.size(); ++d) {
      auto dim = take(d, shape[d]);
      if (!dim) return std::nullopt;
      if (dim->empty()) dim->push_back({kNoForm, 1});
      parts.push_back(std::move(*dim));
    }
    return left_.empty() ? std::optional(std::move(parts)) : std::nullopt;
  }

 private:
  std::optional<DimParts> take(size_t d, int64_t extent) {
    DimParts dim;
    int64_t missing = extent;
    while (missing > 1) {
      if (left_.empty() || left_.back().most < 1) return std::nullopt;
      const SizePart next = left_.back();
      if (next.most <= missing && missing % next.most == 0) {
        left_.pop_back();
        dim.push_back(next);
        missing /= next.most;
      } else if (next.most % missing != 0) {
        return std::nullopt;
      } else {
        // The first factor of a part; the second one is left. If the part varies, so does the
        // first, and the second is fixed: 2 of each h in h = 2 * (h / 2).
        SizePart first{kNoForm, missing};
        if (next.form != kNoForm) {
          const auto seen = dim.empty() ? rule_.sizes.seen_part(to_, d) : std::nullopt;
          if (!seen || seen->most != missing) return std::nullopt;
          first = *seen;
        }
        left_.back() = {kNoForm, next.most / missing};
        dim.push_back(first);
        missing = 1;
      }
    }
    return dim;
  }

  SizeRule& rule_;
  ValueId to_;
  DimParts left_;  // the next one last
};

Status follow_reshape(SizeRule& rule) {
  const ValueId from = rule.node.inputs[0], to = rule.node.outputs[0];
  auto parts = Regrouping(rule, from, to).run();
  if (!parts) {
    return rule.c.unsupported(
        "elements of {} move in memory as {}, where extents vary from run to run: give sizes "
        "instead of a range (--shape)",
        to_string(rule.c.shape_of(from)), to_string(rule.c.shape_of(to)));
  }
  rule.sizes.set_parts(to, std::move(*parts));
  return ok_status();
}

size_t axis_of(const SizeRule& rule, int64_t otherwise) {
  return static_cast<size_t>(*normalize_axis(rule.node.attributes.integer("axis", otherwise),
                                             rule.c.rank_of(rule.node.inputs[0])));
}

// Returns whether there is room for forms that only make a library faster.
bool may_add_forms(const SizeRule& rule) {
  return rule.sizes.graph().varying.forms.size() < kMaxForms / 2;
}

// Behind an operand whose extent varies there is a gap, unless it is the last one: then the result
// is gathered from what the operands have.
Status follow_concat(SizeRule& rule) {
  const size_t axis = axis_of(rule, 0);
  const ValueId out = rule.node.outputs[0];
  ShapeParts parts(rule.c.shape_of(out).size());
  bool gaps = false;
  for (size_t d = 0; d < parts.size(); ++d) {
    std::vector<SharedDim> shared;
    for (ValueId& in : rule.node.inputs) shared.push_back({&in, d});
    if (d != axis) HONE_RETURN_IF_ERROR(share_parts(rule, shared, parts[d]));
  }
  for (size_t i = 0; i < rule.node.inputs.size(); ++i) {
    ValueId& in = rule.node.inputs[i];
    HONE_RETURN_IF_ERROR(make_contiguous(rule, in, axis));
    gaps = gaps || (rule.sizes.varies(in, axis) && i + 1 < rule.node.inputs.size());
  }
  std::vector<DimParts> extents;
  for (const ValueId in : rule.node.inputs) extents.push_back(rule.sizes.parts_of(in)[axis]);
  const auto sum = rule.sizes.sum_form(extents);
  if (!sum) return rule.c.unsupported("its extent along axis {} is no sum of sizes", axis);
  parts[axis] = {{*sum, rule.c.shape_of(out)[axis]}};
  if (gaps) {
    ExpandContext& c = rule.c;
    // Element i of the result is element i of what came before, or element i - n of the next
    // operand, if n elements came before.
    const int64_t most = c.shape_of(out)[axis];
    const ValueId place = numbers_from_0(c, most);
    ValueId before = c.scalar(DType::kI64, 0), result = kNoValue;
    Shape along(parts.size() - axis, 1);
    along[0] = most;
    for (size_t i = 0; i < rule.node.inputs.size(); ++i) {
      const ValueId in = rule.node.inputs[i];
      const ValueId from = c.binary("Max", c.binary("Sub", place, before), 0.0);
      const bool is_last = i + 1 == extents.size();
      const std::vector<DimParts> first(extents.begin(),
                                        extents.begin() + static_cast<long>(i) + 1);
      const auto end = is_last               ? sum
                       : may_add_forms(rule) ? rule.sizes.sum_form(first)
                                             : std::nullopt;
      const ValueId own = end ? rule.sizes.gathered(c, in, from, axis, {*end, extents[i]})
                              : c.add("Gather", {in, from}, {{"axis", static_cast<int64_t>(axis)}});
      result =
          result == kNoValue
              ? own
              : c.add("Where", {c.reshape(c.binary("Less", place, before), along), result, own});
      const bool varies = end && *end != kNoForm;
      before = varies ? rule.sizes.size_of(c, *end)
                      : c.binary("Add", before, rule.sizes.extent_of(c, extents[i]));
    }
    c.result(0, result);
    rule.replaced = true;
  }
  rule.sizes.set_parts(out, std::move(parts));
  return ok_status();
}

constexpr SizeRuleOf kRules[] = {
    {"Transpose", follow_transpose},     {"Reshape", follow_reshape, 0b10},
    {"Flatten", follow_reshape},         {"Squeeze", follow_reshape, 0b10},
    {"Unsqueeze", follow_reshape, 0b10}, {"Concat", follow_concat},
};

}  // namespace

std::span<const SizeRuleOf> size_rules_of_shapes() { return kRules; }

}  // namespace hone::graph
