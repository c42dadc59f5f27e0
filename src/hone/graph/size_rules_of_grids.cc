// Rules for shapes that vary, of GridSample and RoiAlign. Places of a grid are parts of the data's
// sides, so they become the same places of the largest sides; elements behind those of a run are
// what the padding says. Regions are read from maps whose sides are an operand.
#include <algorithm>

#include "hone/graph/ops/registry.h"
#include "hone/graph/size_windows.h"

namespace hone::graph {
namespace {

struct GridPlaces {
  bool corners = false, reflects = false, clamps = false;
  // Elements behind the largest side, so that what is read beside a place is not reflected there.
  int64_t margin = 0;
  // The distance between the places -1 and 1 along a side of this extent.
  [[nodiscard]] double span(int64_t extent) const {
    return static_cast<double>(corners ? extent - 1 : extent);
  }
  [[nodiscard]] ValueId span(ExpandContext& c, ValueId extent) const {
    return corners ? c.binary("Add", extent, -1.0) : extent;
  }
};

// Each distance from the first place, as one of 0 .. span, reflected at both ends.
ValueId reflected(ExpandContext& c, ValueId distance, ValueId span) {
  const ValueId over = c.add("Abs", {distance});
  const ValueId length = c.binary("Max", span, 1.0);  // of a side of one element no place differs
  const ValueId turns = c.add("Floor", {c.binary("Div", over, length)});
  const ValueId rest = c.binary("Sub", over, c.binary("Mul", turns, length));
  const ValueId half = c.binary("Mul", turns, 0.5);
  const ValueId is_even = c.binary("Equal", half, c.add("Floor", {half}));
  return c.add("Where", {is_even, rest, c.binary("Sub", length, rest)});
}

// The grid for data of the largest sides.
ValueId grid_of_largest(SizeRule& rule, const GridPlaces& places, bool exact) {
  ExpandContext& c = rule.c;
  const ShapeParts parts = rule.sizes.parts_of(rule.node.inputs[0]);
  const DType given = c.dtype_of(rule.node.inputs[1]);
  const DType type = exact || given == DType::kF64 ? DType::kF64 : DType::kF32;
  std::vector<ValueId> spans;
  Tensor largest(type, {static_cast<int64_t>(parts.size() - kFirstSide)});
  for (size_t d = parts.size(); d-- > kFirstSide;) {  // the place along the last side comes first
    const ValueId extent = c.cast(rule.sizes.extent_of(c, parts[d]), type);
    const int64_t margin = rule.sizes.varies(rule.node.inputs[0], d) ? places.margin : 0;
    largest.set(static_cast<int64_t>(spans.size()),
                std::max(places.span(c.shape_of(rule.node.inputs[0])[d] + margin), 1.0));
    spans.push_back(c.reshape(places.span(c, extent), {1}));
  }
  const ValueId span =
      spans.size() == 1 ? spans[0] : c.add("Concat", spans, {{"axis", int64_t{0}}});
  const ValueId from_first = c.binary("Add", c.cast(rule.node.inputs[1], type), 1.0);
  ValueId distance = c.binary("Mul", c.binary("Mul", from_first, 0.5), span);
  if (places.reflects) distance = reflected(c, distance, span);
  if (places.clamps) {
    const ValueId last = places.corners ? span : c.binary("Add", span, -0.5);
    distance = c.add("Where", {c.binary("Less", span, distance), last, distance});
  }
  const ValueId part = c.binary("Div", c.binary("Mul", distance, 2.0), c.constant(largest));
  return c.binary("Add", part, -1.0);
}

// The data with what the padding says behind the elements of a run.
Status pad_sides(SizeRule& rule, const std::string& padding, const GridPlaces& places) {
  ExpandContext& c = rule.c;
  ValueId& x = rule.node.inputs[0];
  const ShapeParts parts = rule.sizes.parts_of(x);
  std::vector<size_t> sides;
  for (size_t d = kFirstSide; d < parts.size(); ++d) {
    if (rule.sizes.varies(x, d)) sides.push_back(d);
  }
  if (padding == "zeros") {
    x = rule.sizes.filled(c, x, sides, 0);
    return ok_status();
  }
  for (const size_t d : sides) {
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < c.shape_of(x)[d] + places.margin; ++i) numbers.push_back(i);
    const ValueId place = c.integers(numbers), extent = rule.sizes.extent_of(c, parts[d]);
    ValueId from = c.binary("Add", extent, -1.0);
    if (places.reflects) {
      const ValueId twice =
          c.binary("Add", c.binary("Mul", extent, 2.0), places.corners ? -2.0 : -1.0);
      from = c.binary("Max", c.binary("Sub", twice, place), 0.0);
    }
    x = c.add("Gather", {x, c.binary("Min", place, from)}, {{"axis", static_cast<int64_t>(d)}});
  }
  return c.status();
}

Status follow_grid_sample(SizeRule& rule) {
  ValueId &x = rule.node.inputs[0], &grid = rule.node.inputs[1];
  const size_t rank = rule.c.shape_of(x).size();
  bool sides_vary = false;
  for (size_t d = kFirstSide; d < rank; ++d) {
    sides_vary = sides_vary || rule.sizes.varies(x, d);
    HONE_RETURN_IF_ERROR(make_contiguous(rule, x, d));
  }
  DimParts batch;
  HONE_RETURN_IF_ERROR(share_parts(rule, {{&x, 0}, {&grid, 0}}, batch));
  const ShapeParts of_grid = rule.sizes.parts_of(grid);
  ShapeParts parts = {batch, rule.sizes.parts_of(x)[1]};
  parts.insert(parts.end(), of_grid.begin() + 1, of_grid.end() - 1);
  if (sides_vary) {
    const std::string padding = rule.node.attributes.text("padding_mode", "zeros");
    const std::string mode = rule.node.attributes.text("mode", "linear");
    const bool is_cubic = mode == "cubic" || mode == "bicubic";
    GridPlaces places{.corners = rule.node.attributes.integer("align_corners", 0) != 0,
                      .reflects = padding == "reflection",
                      .clamps = padding == "border"};
    if (places.reflects && is_cubic) places.margin = 2;
    const bool exact = mode == "nearest";
    const ValueId moved = grid_of_largest(rule, places, exact);
    HONE_RETURN_IF_ERROR(pad_sides(rule, padding, places));
    grid = moved;
  }
  rule.sizes.set_parts(rule.node.outputs[0], std::move(parts));
  return rule.c.status();
}

// A region that a run does not have is empty, as a large one takes long.
Status follow_roi_align(SizeRule& rule) {
  ExpandContext& c = rule.c;
  ValueId &x = rule.node.inputs[0], &regions = rule.node.inputs[1], &maps = rule.node.inputs[2];
  for (const size_t d : {size_t{0}, kFirstSide, kFirstSide + 1})
    HONE_RETURN_IF_ERROR(make_contiguous(rule, x, d));
  ShapeParts parts = rule.sizes.parts_of(rule.node.outputs[0]);
  const ShapeParts of_x = rule.sizes.parts_of(x);
  parts[0].clear();
  HONE_RETURN_IF_ERROR(share_parts(rule, {{&regions, 0}, {&maps, 0}}, parts[0]));
  parts[1] = of_x[1];
  HONE_RETURN_IF_ERROR(read_indices(rule, 2, of_x[0], rule.sizes.varies(x, 0)));
  regions = rule.sizes.filled(c, regions, {0}, 0);
  if (rule.sizes.varies(x, kFirstSide) || rule.sizes.varies(x, kFirstSide + 1)) {
    std::vector<ValueId> sides;
    for (const size_t d : {kFirstSide, kFirstSide + 1})
      sides.push_back(c.reshape(rule.sizes.extent_of(c, of_x[d]), {1}));
    rule.node.type = "hone.RoiAlign";
    rule.node.op = find_op(rule.node.type, kMaxOpset);
    rule.node.inputs.push_back(c.add("Concat", sides, {{"axis", int64_t{0}}}));
  }
  rule.sizes.set_parts(rule.node.outputs[0], std::move(parts));
  return c.status();
}

constexpr SizeRuleOf kRules[] = {
    {"GridSample", follow_grid_sample},
    {"RoiAlign", follow_roi_align},
};

}  // namespace

std::span<const SizeRuleOf> size_rules_of_grids() { return kRules; }

}  // namespace hone::graph
