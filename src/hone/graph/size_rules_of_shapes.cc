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

// Returns how many dimensions at the front of both values, or at their end, are alike at all sizes.
size_t dims_alike(const SizeRule& rule, ValueId from, ValueId to, bool at_end) {
  const Shape &a = rule.c.shape_of(from), &b = rule.c.shape_of(to);
  const auto dim = [&](const Shape& shape, size_t i) {
    return shape[at_end ? shape.size() - 1 - i : i];
  };
  const auto is_alike = [&](size_t i) {
    const auto& probes = rule.sizes.probes();
    return dim(a, i) == dim(b, i) &&
           std::all_of(probes.begin(), probes.end(), [&](const SizeProbe& probe) {
             const Value* x = probe.twin(rule.sizes.origin(from));
             const Value* y = probe.twin(rule.sizes.origin(to));
             return x == nullptr || y == nullptr || dim(x->shape, i) == dim(y->shape, i);
           });
  };
  size_t alike = 0;
  while (alike < std::min(a.size(), b.size()) && is_alike(alike)) ++alike;
  return alike;
}

// Returns the number of each element among those of a run, where these dimensions have such parts.
ValueId numbers_in_run(SizeRule& rule, const ShapeParts& dims, const Shape& shape) {
  ExpandContext& c = rule.c;
  ValueId number = c.scalar(DType::kI64, 0);
  for (size_t d = 0; d < dims.size(); ++d) {
    const ValueId own = along(c, numbers_from_0(c, shape[d]), d, dims.size());
    const ValueId rows =
        d == 0 ? number : c.binary("Mul", number, rule.sizes.extent_of(c, dims[d]));
    number = c.binary("Add", rows, own);
  }
  return number;
}

// A list of places that is read as channels, or as a picture with other rows: in a run each element
// has another place than in the largest shape. It is gathered by its number.
Status gather_reshaped(SizeRule& rule) {
  const ValueId from = rule.node.inputs[0], to = rule.node.outputs[0];
  const ShapeParts given = rule.sizes.parts_of(from);
  const Shape shape = rule.c.shape_of(to), shape_given = rule.c.shape_of(from);
  const size_t front = dims_alike(rule, from, to, false);
  const size_t rest = std::min(shape.size(), shape_given.size()) - front;
  const size_t back = std::min(dims_alike(rule, from, to, true), rest);
  ShapeParts parts(given.begin(), given.begin() + static_cast<long>(front)), moved;
  for (size_t d = front; d < shape.size() - back; ++d) {
    const auto seen = rule.sizes.seen_part(to, d);
    if (!seen) {
      return rule.c.unsupported(
          "elements of {} move in memory as {}, of which dimension {} does not follow from the "
          "sizes: give sizes instead of a range (--shape)",
          to_string(shape_given), to_string(shape), d);
    }
    moved.push_back({*seen});
    parts.push_back({*seen});
  }
  parts.insert(parts.end(), given.end() - static_cast<long>(back), given.end());
  if (!rule.sizes.have_as_many(given, parts)) {
    return rule.c.unsupported(
        "elements of {} move in memory as {}, whose dimensions do not follow from the sizes: give "
        "sizes instead of a range (--shape)",
        to_string(shape_given), to_string(shape));
  }
  DimParts places;
  Shape flat(shape_given.begin(), shape_given.begin() + static_cast<long>(front));
  flat.push_back(1);
  for (size_t d = front; d < given.size() - back; ++d) {
    places.insert(places.end(), given[d].begin(), given[d].end());
    flat.back() *= shape_given[d];
  }
  flat.insert(flat.end(), shape_given.end() - static_cast<long>(back), shape_given.end());
  const Shape middle(shape.begin() + static_cast<long>(front),
                     shape.end() - static_cast<long>(back));
  const ValueId numbers = numbers_in_run(rule, moved, middle);
  rule.c.result(
      0, rule.c.add("Gather",
                    {rule.c.reshape(from, flat), rule.sizes.places_of(rule.c, numbers, places)},
                    {{"axis", static_cast<int64_t>(front)}}));
  rule.sizes.set_parts(to, std::move(parts));
  rule.replaced = true;
  return ok_status();
}

Status follow_reshape(SizeRule& rule) {
  auto parts = Regrouping(rule, rule.node.inputs[0], rule.node.outputs[0]).run();
  if (!parts) return gather_reshaped(rule);
  rule.sizes.set_parts(rule.node.outputs[0], std::move(*parts));
  return ok_status();
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
