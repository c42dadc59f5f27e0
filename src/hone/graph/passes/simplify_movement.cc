// Rules for what only moves elements or says their shape or type anew.
#include <algorithm>

#include "hone/graph/integer_at.h"
#include "hone/graph/ops/movement.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/passes/simplify_rules.h"
#include "hone/tensor/small_types.h"

namespace hone::graph {
namespace {

// Values whose shape data decides at run time keep their operators.
bool varies(const RewriteSite& site) {
  return site.result().extents != kNoValue || site.operand(0).extents != kNoValue;
}

Result<bool> reshape_of_reshape(const RewriteSite& site) {
  if (!is_reshape(site.node()) || varies(site)) return false;
  const Node* inner = site.maker(site.node().inputs[0]);
  if (inner == nullptr || !is_reshape(*inner) || inner->outputs.size() != 1 ||
      site.graph.value(inner->inputs[0]).extents != kNoValue)
    return false;
  const ValueId x = inner->inputs[0];
  HONE_RETURN_IF_ERROR(
      replace_node(site, [&](ExpandContext& c) { return c.reshape(x, site.result().shape); }));
  return true;
}

Result<bool> transpose_of_transpose(const RewriteSite& site) {
  if (site.node().type != "Transpose" || varies(site)) return false;
  const Node* inner = site.maker(site.node().inputs[0]);
  if (inner == nullptr || inner->type != "Transpose") return false;
  const Shape outer = permutation_of(site.graph, site.node());
  const Shape first = permutation_of(site.graph, *inner);
  Shape both;
  for (const int64_t d : outer) both.push_back(first[static_cast<size_t>(d)]);
  const ValueId x = inner->inputs[0];
  HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) { return c.transpose(x, both); }));
  return true;
}

// A transpose that moves dimensions of extent 1 only is a reshape, and needs no memory order.
Result<bool> transpose_that_moves_nothing(const RewriteSite& site) {
  if (site.node().type != "Transpose" || varies(site)) return false;
  const Shape& shape = site.operand(0).shape;
  int64_t last = -1;
  for (const int64_t d : permutation_of(site.graph, site.node())) {
    if (shape[static_cast<size_t>(d)] == 1) continue;
    if (d < last) return false;
    last = d;
  }
  const ValueId x = site.node().inputs[0];
  // A value of rank 4 may lie in another order: there the transpose costs nothing, either.
  if (shape.size() == 4) return false;
  HONE_RETURN_IF_ERROR(
      replace_node(site, [&](ExpandContext& c) { return c.reshape(x, site.result().shape); }));
  return true;
}

// All elements of an axis in their order are the data in another shape. So PyTorch's exporter
// writes `as_strided` behind means over pictures.
Result<bool> gather_of_all(const RewriteSite& site) {
  if (site.node().type != "Gather" || varies(site) || !site.operand(1).constant) return false;
  const Shape& shape = site.operand(0).shape;
  const int64_t axis = site.node().attributes.integer("axis", 0);
  const Tensor& indices = *site.operand(1).constant;
  const int64_t extent = shape[static_cast<size_t>(axis < 0 ? axis + std::ssize(shape) : axis)];
  if (indices.size() != extent) return false;
  for (int64_t i = 0; i < extent; ++i)
    if (integer_at(indices, i) != i) return false;
  const ValueId x = site.node().inputs[0];
  HONE_RETURN_IF_ERROR(
      replace_node(site, [&](ExpandContext& c) { return c.reshape(x, site.result().shape); }));
  return true;
}

bool takes_all(const SliceRange& range, const Shape& shape) {
  return range.shape == shape &&
         std::all_of(range.step.begin(), range.step.end(), [](int64_t s) { return s == 1; });
}

ValueId slice_by(ExpandContext& c, ValueId x, const SliceRange& range) {
  std::vector<int64_t> starts, ends, axes, steps;
  for (size_t d = 0; d < range.shape.size(); ++d) {
    const int64_t last = range.start[d] + (range.shape[d] - 1) * range.step[d];
    starts.push_back(range.start[d]);
    ends.push_back(range.step[d] > 0 ? last + 1 : (last == 0 ? INT64_MIN : last - 1));
    axes.push_back(static_cast<int64_t>(d));
    steps.push_back(range.step[d]);
  }
  return c.add("Slice",
               {x, c.integers(starts), c.integers(ends), c.integers(axes), c.integers(steps)});
}

Result<bool> slice_of_slice(const RewriteSite& site) {
  if (site.node().type != "Slice" || varies(site)) return false;
  if (num_elements(site.result().shape) == 0) return false;
  SliceRange range = slice_range(site.graph, site.node());
  ValueId x = site.node().inputs[0];
  if (takes_all(range, site.operand(0).shape)) {
    bypass_node(site, x);
    return true;
  }
  const Node* inner = site.maker(x);
  if (inner == nullptr || inner->type != "Slice" ||
      site.graph.value(inner->inputs[0]).extents != kNoValue)
    return false;
  const SliceRange first = slice_range(site.graph, *inner);
  for (size_t d = 0; d < range.start.size(); ++d) {
    range.start[d] = first.start[d] + range.start[d] * first.step[d];
    range.step[d] *= first.step[d];
  }
  x = inner->inputs[0];
  HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) { return slice_by(c, x, range); }));
  return true;
}

// Heads are split from a part of a product: the whole is split, so that the part moves nothing.
Result<bool> reshape_of_slice(const RewriteSite& site) {
  if (!is_reshape(site.node()) || varies(site)) return false;
  const Node* slice = site.maker(site.node().inputs[0]);
  if (slice == nullptr || slice->type != "Slice") return false;
  const ValueId x = slice->inputs[0];
  const Value& whole = site.graph.value(x);
  // The result of a convolution would first have to be reordered as a whole.
  if (whole.shape.size() > 3 || whole.extents != kNoValue) return false;
  const SliceRange range = slice_range(site.graph, *slice);
  std::optional<Part> part;
  for (size_t d = 0; d < range.shape.size(); ++d) {
    if (range.step[d] != 1) return false;
    if (range.shape[d] == whole.shape[d]) continue;
    if (part) return false;
    part = Part{d, range.start[d], range.shape[d]};
  }
  if (!part) return false;
  const auto found = reshape_before_slice(whole.shape, *part, site.result().shape);
  if (!found) return false;
  HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) {
    const Part& p = found->part;
    return c.slice(c.reshape(x, found->whole), static_cast<int64_t>(p.axis), p.start,
                   p.start + p.extent);
  }));
  return true;
}

// Whether every value of a type survives the conversion to another and back.
bool holds_all(DType wide, DType narrow) {
  if (wide == narrow || narrow == DType::kBool) return true;
  if (is_small(wide)) return false;
  if (is_small_float(narrow)) return wide == DType::kF32 || wide == DType::kF64;
  const auto is_signed = [](DType t) {
    return t == DType::kI8 || t == DType::kI16 || t == DType::kI32 || t == DType::kI64;
  };
  const auto bits = [](DType t) { return dtype_bytes(t) * 8; };
  if (is_float(narrow)) {
    const bool halves = wide == DType::kF16 || wide == DType::kBF16;
    return is_float(wide) && !halves && bits(wide) > bits(narrow);
  }
  if (wide == DType::kF64) return bits(narrow) <= 32;
  if (wide == DType::kF32) return bits(narrow) <= 16;
  if (is_float(wide) || wide == DType::kBool) return false;
  if (is_signed(wide))
    return bits(wide) > bits(narrow) || (is_signed(narrow) && bits(wide) == bits(narrow));
  return !is_signed(narrow) && bits(wide) >= bits(narrow);
}

// The type in between held every value: one cast does what both do.
Result<bool> cast_of_cast(const RewriteSite& site) {
  if (site.node().type != "Cast") return false;
  const Node* inner = site.maker(site.node().inputs[0]);
  if (inner == nullptr || inner->type != "Cast") return false;
  if (is_small(site.result().dtype)) return false;  // its attributes say how it is rounded
  const ValueId x = inner->inputs[0];
  if (!holds_all(site.operand(0).dtype, site.graph.value(x).dtype)) return false;
  HONE_RETURN_IF_ERROR(
      replace_node(site, [&](ExpandContext& c) { return c.cast(x, site.result().dtype); }));
  return true;
}

}  // namespace

std::optional<ReshapedPart> reshape_before_slice(const Shape& whole, const Part& part,
                                                 const Shape& shape) {
  const auto a = static_cast<long>(part.axis);
  const int64_t before = num_elements(Shape(whole.begin(), whole.begin() + a));
  // The first dimensions of the shape are those before the axis; the axis is the outermost of some.
  int64_t product = 1;
  size_t first = 0;
  while (first < shape.size() && product < before) product *= shape[first++];
  while (first + 1 < shape.size() && shape[first] == 1 && part.extent > 1) ++first;
  if (product != before || first >= shape.size()) return std::nullopt;
  const int64_t after = num_elements(Shape(whole.begin() + a + 1, whole.end()));
  const int64_t inner =
      num_elements(Shape(shape.begin() + static_cast<long>(first) + 1, shape.end()));
  // Elements along the axis that stand in one step of dimension `first`.
  if (after == 0 || inner % after != 0) return std::nullopt;
  const int64_t step = inner / after;
  if (step == 0 || part.start % step != 0 || part.extent % step != 0 ||
      whole[part.axis] % step != 0)
    return std::nullopt;
  ReshapedPart result{shape, {first, part.start / step, part.extent / step}};
  result.whole[first] = whole[part.axis] / step;
  return result;
}

std::span<const Rule> movement_rules() {
  static constexpr Rule kRules[] = {{"reshape_of_reshape", reshape_of_reshape},
                                    {"transpose_of_transpose", transpose_of_transpose},
                                    {"transpose_that_moves_nothing", transpose_that_moves_nothing},
                                    {"gather_of_all", gather_of_all},
                                    {"slice_of_slice", slice_of_slice},
                                    {"reshape_of_slice", reshape_of_slice},
                                    {"cast_of_cast", cast_of_cast}};
  return kRules;
}

}  // namespace hone::graph
