#include <algorithm>

#include "hone/graph/integer_at.h"
#include "hone/graph/known_elements.h"
#include "hone/graph/node_names.h"
#include "hone/graph/ops/loop_builder.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {

bool varies(const ExpandContext& c, size_t i) {
  return c.has(i) && c.extents_of(c.input(i)) != kNoValue;
}

std::optional<int64_t> known_extent(const ExpandContext& c, size_t i, size_t d) {
  const int64_t most = c.shape(i)[d];
  if (!varies(c, i)) return most;
  const auto known =
      known_element(c.graph(), c.nodes(), {c.extents_of(c.input(i)), static_cast<int64_t>(d)});
  return known == most ? known : std::nullopt;
}

bool is_decided(const ExpandContext& c, size_t i, size_t d) {
  return varies(c, i) && !known_extent(c, i, d);
}

bool stands_for_run(const ExpandContext& c, size_t i) {
  return c.node().made_for != nullptr && c.graph().value(c.input(i)).is_of_largest;
}

ValueId dimension(ExpandContext& c, ValueId extents, int64_t d) {
  return c.slice(extents, 0, d, d + 1);
}

ValueId divisor(ExpandContext& c, ValueId extent) { return c.binary("Max", extent, 1.0); }

ValueId extent_of(ExpandContext& c, const ExtentPart& part) {
  return part.extents == kNoValue ? c.integers({part.dim}) : dimension(c, part.extents, part.dim);
}

Result<ExtentPart> checked_extent(ExpandContext& c, const ExtentPart& part, const ExtentPart& other,
                                  std::string_view what) {
  if (are_same(c, as_number(c, part), as_number(c, other))) return part;
  const ValueId extent = extent_of(c, part);
  const ValueId is_same = c.binary("Equal", extent, extent_of(c, other));
  HONE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> made,
      LoopBuilder::add_fault(c, c.add("Not", {c.reshape(is_same, {})}),
                             {.beyond = fmt::format("{}: its operands have different numbers of "
                                                    "{} in this run",
                                                    name_and_type(c.node()), what)},
                             {extent}));
  return ExtentPart{made[0], 0};
}

ValueId places_along(ExpandContext& c, const Shape& shape, size_t d) {
  Shape along(shape.size(), 1);
  along[d] = shape[d];
  return numbers_from_0(c, DType::kI64, along);
}

ValueId as_list(ExpandContext& c, ValueId x) {
  if (c.extents_of(x) == kNoValue) return c.reshape(x, {num_elements(c.shape_of(x))});
  return c.add("Reshape", {x, c.integers({-1})});
}

ValueId filled(ExpandContext& c, ValueId x, double fill) {
  return c.extents_of(x) == kNoValue ? x : filled_with(c, x, c.scalar(c.dtype_of(x), fill));
}

ValueId filled_with(ExpandContext& c, ValueId x, ValueId fill) {
  const ValueId extents = c.extents_of(x);
  if (extents == kNoValue) return x;
  ValueId y = without_extents(c, x);
  const Shape shape = c.shape_of(x);
  for (int64_t d = 0; d < std::ssize(shape); ++d) {
    const ExtentPart known = as_number(c, {extents, d});
    if (known.extents == kNoValue && known.dim == shape[static_cast<size_t>(d)]) continue;
    const ValueId inside = c.binary("Less", places_along(c, shape, static_cast<size_t>(d)),
                                    c.reshape(dimension(c, extents, d), {}));
    y = c.add("Where", {inside, y, fill});
  }
  return y;
}

ValueId from_begin(ExpandContext& c, ValueId place, ValueId extent) {
  const ValueId is_below = c.binary("Less", place, 0.0);
  return c.add("Where", {is_below, c.binary("Add", place, extent), place});
}

ValueId indices_from_begin(ExpandContext& c, ValueId indices, ValueId extents) {
  return from_begin(c, indices, c.cast(extents, c.dtype_of(indices)));
}

ValueId safe_indices(ExpandContext& c, ValueId indices) { return filled(c, indices, 0); }

std::vector<ExtentPart> parts(ExpandContext& c, ValueId x, size_t begin, size_t end) {
  std::vector<ExtentPart> list;
  const ValueId extents = c.extents_of(x);
  for (size_t d = begin; d < end; ++d) {
    const auto dim = static_cast<int64_t>(d);
    list.push_back(extents == kNoValue ? ExtentPart{kNoValue, c.shape_of(x)[d]}
                                       : ExtentPart{extents, dim});
  }
  return list;
}

ExtentPart as_number(const ExpandContext& c, const ExtentPart& part) {
  if (part.extents == kNoValue) return part;
  const auto known = known_element(c.graph(), c.nodes(), {part.extents, part.dim});
  return known ? ExtentPart{kNoValue, *known} : part;
}

ExtentPart part_of(ExpandContext& c, ValueId x, size_t d) {
  return as_number(c, parts(c, x, d, d + 1)[0]);
}

bool are_same(const ExpandContext& c, const ExtentPart& a, const ExtentPart& b) {
  if (a.extents == kNoValue || b.extents == kNoValue)
    return a.extents == b.extents && a.dim == b.dim;
  return are_same_element(c.graph(), c.nodes(), {a.extents, a.dim}, {b.extents, b.dim});
}

std::vector<ExtentPart> joined(std::vector<ExtentPart> a, const std::vector<ExtentPart>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Result<Shape> largest_shape(ExpandContext& c, size_t operand) {
  const Tensor* upper = c.upper_of(c.input(operand));
  if (upper == nullptr) return c.required(operand, "the shape").status();
  if (varies(c, operand)) return c.unsupported("a shape whose length depends on data");
  Shape shape;
  for (int64_t i = 0; i < upper->size(); ++i) shape.push_back(integer_at(*upper, i));
  return shape;
}

Result<size_t> axis_of(const ExpandContext& c, int64_t otherwise, size_t rank) {
  const int64_t given = c.attributes().integer("axis", otherwise);
  const auto axis = normalize_axis(given, static_cast<int64_t>(rank));
  if (!axis) return c.fail("axis {} of a value of rank {}", given, rank);
  return static_cast<size_t>(*axis);
}

}  // namespace hone::graph
