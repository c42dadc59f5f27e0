// Rules for shapes that vary, of operators that read or write the places of elements in windows:
// the indices of a MaxPool, MaxUnpool, Col2Im. In a run, indices count the elements that it has.
#include <algorithm>
#include <limits>

#include "hone/graph/size_windows.h"

namespace hone::graph {
namespace {

// Indices count the elements of all channels.
Status check_channels(const SizeRule& rule) {
  if (!rule.sizes.varies(rule.node.inputs[0], 1)) return ok_status();
  return rule.c.unsupported(
      "dimension 1 of operand 0 varies from run to run: give one size for it (--shape)");
}

constexpr int64_t kMostTerms = 16;  // of a sum of sides

// Indices into the last dimensions of a value as those into another one, of which these dimensions
// have other extents: `from` and `to`, those of neighbouring elements first.
ValueId in_other_sides(ExpandContext& c, ValueId index, const std::vector<ValueId>& from,
                       const std::vector<ValueId>& to) {
  ValueId left = index, moved = kNoValue, stride = c.scalar(DType::kI64, 1);
  for (size_t k = 0; k < from.size(); ++k) {
    const ValueId place = c.binary("Mul", c.binary("Mod", left, from[k]), stride);
    moved = moved == kNoValue ? place : c.binary("Add", moved, place);
    stride = c.binary("Mul", stride, to[k]);
    left = c.binary("Div", left, from[k]);
  }
  return c.binary("Add", moved, c.binary("Mul", left, stride));
}

ValueId number(ExpandContext& c, int64_t n) {
  return c.scalar(DType::kI64, static_cast<double>(n));
}

// Indices count the batch, too.
Status follow_max_pool_indices(SizeRule& rule) {
  HONE_RETURN_IF_ERROR(make_contiguous(rule, rule.node.inputs[0], 0));
  HONE_RETURN_IF_ERROR(check_channels(rule));
  HONE_RETURN_IF_ERROR(set_window_parts(rule));
  if (!sides_vary(rule)) return ok_status();
  ExpandContext& c = rule.c;
  const ValueId x = rule.node.inputs[0];
  const std::vector<ValueId> outputs = rule.node.outputs;
  const ShapeParts given = rule.sizes.parts_of(x), parts = rule.sizes.parts_of(outputs[0]);
  const double least = -std::numeric_limits<double>::infinity();
  const ValueId filled = rule.sizes.filled(c, x, sides_of(rule), least);
  const Attributes& a = rule.node.attributes;
  const std::vector<ValueId> found = c.add_all("hone.MaxPoolIndices", {filled}, 2,
                                               {{"auto_pad", a.text("auto_pad", "NOTSET")},
                                                {"ceil_mode", a.integer("ceil_mode", 0)},
                                                {"dilations", a.integers("dilations")},
                                                {"kernel_shape", a.integers("kernel_shape")},
                                                {"pads", a.integers("pads")},
                                                {"storage_order", a.integer("storage_order", 0)},
                                                {"strides", a.integers("strides")}});
  std::vector<size_t> order = sides_of(rule);
  if (rule.node.attributes.integer("storage_order", 0) == 0)
    std::reverse(order.begin(), order.end());
  std::vector<ValueId> most, of_run;
  for (const size_t d : order) {
    most.push_back(number(c, c.shape_of(x)[d]));
    of_run.push_back(rule.sizes.extent_of(c, given[d]));
  }
  c.result(0, found[0]);
  c.result(1, in_other_sides(c, found[1], most, of_run));
  for (const ValueId out : outputs) {
    if (out != kNoValue) rule.sizes.set_parts(out, parts);
  }
  rule.replaced = true;
  return c.status();
}

// The indices of elements that a run does not have are -1, so that they are written nowhere.
Status follow_max_unpool(SizeRule& rule) {
  ExpandContext& c = rule.c;
  ValueId &x = rule.node.inputs[0], &indices = rule.node.inputs[1];
  const ValueId out = rule.node.outputs[0];
  HONE_RETURN_IF_ERROR(check_channels(rule));
  HONE_RETURN_IF_ERROR(make_contiguous(rule, x, 0));
  HONE_RETURN_IF_ERROR(make_contiguous(rule, indices, 0));
  ShapeParts parts = rule.sizes.parts_of(out);
  parts[0].clear();
  HONE_RETURN_IF_ERROR(share_parts(rule, {{&x, 0}, {&indices, 0}}, parts[0]));
  const Shape kernel = rule.node.attributes.integers("kernel_shape");
  const Shape strides = rule.node.attributes.integers("strides", Shape(kernel.size(), 1));
  const Shape pads = rule.node.attributes.integers("pads", Shape(2 * kernel.size(), 0));
  const auto offset = [&](size_t k) {
    return kernel[k] - strides[k] - pads[k] - pads[kernel.size() + k];
  };
  std::vector<size_t> sides = sides_of(rule);
  for (const size_t d : sides) {
    HONE_RETURN_IF_ERROR(make_contiguous(rule, x, d));
    HONE_RETURN_IF_ERROR(make_contiguous(rule, indices, d));
    const size_t k = d - kFirstSide;
    // The side of x, as many times as the stride says, plus a number.
    std::vector<DimParts> sum;
    if (strides[k] <= kMostTerms && offset(k) >= 0) {
      sum.assign(static_cast<size_t>(strides[k]), rule.sizes.parts_of(x)[d]);
      sum.push_back({{kNoForm, offset(k)}});
    }
    const auto form = sum.empty() ? std::nullopt : rule.sizes.sum_form(sum);
    HONE_ASSIGN_OR_RETURN(
        const SizePart side,
        form ? Result<SizePart>(SizePart{*form, rule.c.shape_of(out)[d]}) : part_of(rule, out, d));
    parts[d] = {side};
  }
  if (sides_vary(rule)) {
    const ShapeParts given = rule.sizes.parts_of(x);
    std::vector<ValueId> most, of_run;
    for (size_t k = kernel.size(); k-- > 0;) {
      const size_t d = kFirstSide + k;
      most.push_back(number(c, c.shape_of(x)[d] * strides[k] + offset(k)));
      const ValueId steps =
          c.binary("Mul", rule.sizes.extent_of(c, given[d]), static_cast<double>(strides[k]));
      of_run.push_back(c.binary("Add", steps, static_cast<double>(offset(k))));
    }
    const ValueId moved = in_other_sides(c, indices, of_run, most);
    rule.sizes.set_parts(moved, given);
    indices = rule.sizes.filled(c, moved, sides, -1);
  }
  rule.sizes.set_parts(out, std::move(parts));
  return c.status();
}

// Blocks of a run stand where those of the largest image do, and others are 0.
ValueId blocks_of_largest(SizeRule& rule, const ShapeParts& image) {
  ExpandContext& c = rule.c;
  const ValueId x = rule.node.inputs[0];
  const Tensor kernel = *c.constant_of(rule.node.inputs[2]);
  const auto rank = static_cast<size_t>(kernel.size());
  const Shape strides = rule.node.attributes.integers("strides", Shape(rank, 1));
  const Shape dilations = rule.node.attributes.integers("dilations", Shape(rank, 1));
  const Shape pads = rule.node.attributes.integers("pads", Shape(2 * rank, 0));
  const int64_t all = c.shape_of(x)[2];
  int64_t inner = 1;
  ValueId place = kNoValue, inside = kNoValue, stride = number(c, 1);
  for (size_t k = rank; k-- > 0;) {
    const auto taps = static_cast<int64_t>(kernel.at(static_cast<int64_t>(k)));
    const int64_t room = pads[k] + pads[rank + k] - dilations[k] * (taps - 1) - 1;
    const int64_t most = (c.shape_of(rule.node.outputs[0])[kFirstSide + k] + room) / strides[k] + 1;
    const ValueId at = constant_by(
        c, DType::kI64, {all}, [&](int64_t i) { return static_cast<double>(i / inner % most); });
    inner *= most;
    const ValueId extent = rule.sizes.extent_of(c, image[kFirstSide + k]);
    const ValueId steps = c.binary("Div", c.binary("Add", extent, static_cast<double>(room)),
                                   static_cast<double>(strides[k]));
    const ValueId count = c.binary("Add", steps, 1.0);
    const ValueId moved = c.binary("Mul", at, stride), has = c.binary("Less", at, count);
    place = place == kNoValue ? moved : c.binary("Add", place, moved);
    inside = inside == kNoValue ? has : c.binary("And", inside, has);
    stride = c.binary("Mul", stride, count);
  }
  const ValueId bounded = c.binary("Min", place, static_cast<double>(all - 1));
  const ValueId blocks = c.add("Gather", {x, bounded}, {{"axis", int64_t{2}}});
  return c.add("Where", {inside, blocks, c.scalar(c.dtype_of(x), 0)});
}

Status follow_col2im(SizeRule& rule) {
  HONE_RETURN_IF_ERROR(check_channels(rule));
  const ValueId out = rule.node.outputs[0];
  if (rule.sizes.kind_of_constant(rule.node.inputs[2]) != ConstantKind::kFixed)
    return rule.c.unsupported("operand 2, the shape of a block, varies from run to run");
  HONE_RETURN_IF_ERROR(make_contiguous(rule, rule.node.inputs[0], 2));
  ShapeParts parts = rule.sizes.parts_of(out);
  parts[0] = rule.sizes.parts_of(rule.node.inputs[0])[0];
  for (size_t d = kFirstSide; d < parts.size(); ++d) {
    HONE_ASSIGN_OR_RETURN(const SizePart seen, part_of(rule, out, d));
    parts[d] = {seen};
  }
  if (rule.sizes.varies(rule.node.inputs[0], 2))
    rule.node.inputs[0] = blocks_of_largest(rule, parts);
  rule.sizes.set_parts(out, std::move(parts));
  return rule.c.status();
}

constexpr SizeRuleOf kRules[] = {
    {"hone.MaxPoolIndices", follow_max_pool_indices},
    {"MaxUnpool", follow_max_unpool, 0b100},
    {"Col2Im", follow_col2im, 0b110},
};

}  // namespace

std::span<const SizeRuleOf> size_rules_of_unpools() { return kRules; }

}  // namespace hone::graph
