// Reductions of values whose shape depends on data: what lies beyond the extents is made neutral.
//
// In a loop, those of a Slice that begins where a run says, as a bag of embeddings, are done block
// by block, as many as there are elements: else each turn would look at all that a Slice may have.
#include <algorithm>

#include "hone/graph/known_elements.h"
#include "hone/graph/neutral.h"
#include "hone/graph/ops/loop_builder.h"
#include "hone/graph/propagate_dynamic_shapes.h"
#include "hone/tensor/half_tensor.h"

namespace hone::graph {
namespace {

// Elements along the axis that a turn takes: they cost about as much as the turn itself where each
// is a row of 16 numbers.
constexpr int64_t kBlock = 64;
// Turns that are expected where a run may say how many there are.
constexpr int64_t kExpectedBlocks = 4;

// Which dimensions a reduction reduces.
Result<std::vector<bool>> reduced_dims(const ExpandContext& c) {
  const size_t rank = c.shape(0).size();
  HONE_ASSIGN_OR_RETURN(const auto axes, c.integers_or_attribute(1, "axes"));
  if ((!axes || axes->empty()) && c.attributes().integer("noop_with_empty_axes", 0) != 0)
    return c.unsupported("no axes, of a value whose shape depends on data");
  std::vector<bool> reduced(rank, !axes || axes->empty());
  for (size_t i = 0; axes && i < axes->size(); ++i) {
    const auto axis = normalize_axis((*axes)[i], static_cast<int64_t>(rank));
    if (!axis) return c.fail("axis {} of a value of rank {}", (*axes)[i], rank);
    reduced[static_cast<size_t>(*axis)] = true;
  }
  return reduced;
}

// The dimensions over which an operator reduces, and the shape of its result.
struct Reduction {
  std::vector<int64_t> dims;
  bool keep = false;   // reduced dimensions stay, with one element
  bool fixed = false;  // nothing of the shape is left that depends on data
  std::vector<ExtentPart> shape;

  // Makes a value the result.
  [[nodiscard]] Status give(ExpandContext& c, ValueId y) const {
    c.result(0, fixed ? y : with_extents(c, y, join_extents(c, shape)));
    return ok_status();
  }
};
Result<Reduction> reduction_of(ExpandContext& c) {
  const size_t rank = c.shape(0).size();
  HONE_ASSIGN_OR_RETURN(const std::vector<bool> reduced, reduced_dims(c));
  Reduction made;
  made.keep = c.attributes().integer("keepdims", 1) != 0;
  for (size_t d = 0; d < rank; ++d) {
    if (reduced[d]) made.dims.push_back(static_cast<int64_t>(d));
    if (reduced[d] && made.keep) made.shape.push_back({kNoValue, 1});
    if (!reduced[d]) made.shape = joined(std::move(made.shape), parts(c, c.input(0), d, d + 1));
  }
  made.fixed = made.dims.size() == rank;
  return made;
}

// Returns whether the reduction is of a Slice in a loop, and over the axis of the Slice, where all
// other extents are the same in all runs. `sign` is as in propagate_reduce().
bool goes_in_blocks(const ExpandContext& c, const Reduction& reduction, int sign) {
  const Value& x = c.graph().value(c.input(0));
  // A sum that a loop carries in a half type would be rounded in each turn, and Max takes no bool.
  if (x.dtype == DType::kBool || (sign == 0 && is_half(x.dtype))) return false;
  if (!c.graph().is_body || !x.slice || x.extents == kNoValue || num_elements(x.shape) == 0)
    return false;
  const int64_t axis = x.slice->axis;
  if (std::count(reduction.dims.begin(), reduction.dims.end(), axis) == 0) return false;
  // The graphs of all sizes of a range have the same nodes.
  if (!c.graph().keeps_loops && x.shape[static_cast<size_t>(axis)] <= kBlock) return false;
  for (int64_t d = 0; d < std::ssize(x.shape); ++d) {
    const auto known = known_element(c.graph(), c.nodes(), {x.extents, d});
    if (d != axis && known != x.shape[static_cast<size_t>(d)]) return false;
  }
  return true;
}

// Returns the elements of the slice in a block, with neutral ones behind the last. `count` is the
// number of elements of the slice along its axis.
ValueId block_of(ExpandContext& body, ValueId turn, const RunSlice& slice, ValueId count,
                 double neutral) {
  const ValueId before = body.binary("Mul", body.reshape(turn, {1}), double{kBlock});
  const ValueId numbers = body.binary("Add", numbers_from_0(body, kBlock), before);
  const ValueId steps =
      slice.step == 1 ? numbers : body.binary("Mul", numbers, static_cast<double>(slice.step));
  const auto axis = static_cast<size_t>(slice.axis);
  const ValueId last = body.integers({body.shape_of(slice.from)[axis] - 1});
  ValueId places = body.binary("Min", body.binary("Add", steps, slice.begin), last);
  if (slice.step < 0) places = body.binary("Max", places, 0.0);
  const ValueId rows = body.add("Gather", {slice.from, places}, {{"axis", slice.axis}});
  Shape along(body.shape_of(rows).size(), 1);
  along[axis] = kBlock;
  const ValueId inside = body.reshape(body.binary("Less", numbers, count), along);
  return body.add("Where", {inside, rows, body.scalar(body.dtype_of(rows), neutral)});
}

// Returns the reduction of a Slice by a loop over blocks of its elements.
Result<ValueId> reduce_blocks(ExpandContext& c, const char* type, const Reduction& reduction,
                              int sign) {
  const double neutral = neutral_of(c.dtype(0), sign);
  const ValueId x = c.input(0);
  const RunSlice slice = *c.graph().value(x).slice;
  const char* const join = sign == 0 ? "Add" : sign < 0 ? "Max" : "Min";
  Shape shape = c.shape(0);
  const int64_t blocks = (shape[static_cast<size_t>(slice.axis)] + kBlock - 1) / kBlock;
  for (const int64_t d : reduction.dims) shape[static_cast<size_t>(d)] = 1;
  const ValueId count = dimension(c, c.extents_of(x), slice.axis);
  const ValueId turns = c.binary("Div", c.binary("Add", count, double{kBlock - 1}), double{kBlock});

  LoopBuilder loop(c, blocks);
  ExpandContext& body = loop.body();
  const ValueId before = loop.carry(uniform(c, c.dtype(0), shape, neutral));
  RunSlice inside = slice;
  inside.from = loop.capture(slice.from);
  inside.begin = loop.capture(slice.begin);
  const ValueId block = block_of(body, loop.turn(), inside, loop.capture(count), neutral);
  const ValueId after = body.binary(join, before, body.reduce(type, block, reduction.dims));
  const auto expected = static_cast<double>(std::min(blocks, kExpectedBlocks));
  HONE_ASSIGN_OR_RETURN(
      const LoopResults made,
      loop.finish({.turns = turns, .expected_turns = expected}, kNoValue, kNoValue, {after}, {}));
  const ValueId y = made.carried[0];
  return reduction.keep ? y : c.add("Squeeze", {y, c.integers(reduction.dims)});
}

// Returns what an operator makes of all elements but those that are not there.
Result<ValueId> reduced(ExpandContext& c, const char* type, const Reduction& reduction, int sign) {
  if (goes_in_blocks(c, reduction, sign)) return reduce_blocks(c, type, reduction, sign);
  const ValueId x = filled(c, c.input(0), neutral_of(c.dtype(0), sign));
  return c.reduce(type, x, reduction.dims, reduction.keep);
}

// `sign` is that of the infinity that is neutral; 0 means that zero is.
Status propagate_reduce(ExpandContext& c, const char* type, int sign) {
  HONE_ASSIGN_OR_RETURN(const Reduction reduction, reduction_of(c));
  HONE_ASSIGN_OR_RETURN(const ValueId y, reduced(c, type, reduction, sign));
  return reduction.give(c, y);
}

// A reduction to which elements of this number add nothing.
Status propagate_filled(ExpandContext& c, double neutral) {
  HONE_ASSIGN_OR_RETURN(const Reduction reduction, reduction_of(c));
  const ValueId x = filled(c, c.input(0), neutral);
  const std::string type(c.node().type);
  return reduction.give(c, c.reduce(type.c_str(), x, reduction.dims, reduction.keep));
}

// Elements that are not there come behind all others, and before none. `sign` is as in
// propagate_reduce().
Status propagate_arg(ExpandContext& c, const char* type, int sign) {
  const ValueId x = c.input(0);
  const size_t rank = c.shape(0).size();
  HONE_ASSIGN_OR_RETURN(const size_t axis, axis_of(c, 0, rank));
  const int64_t keep = c.attributes().integer("keepdims", 1);
  const int64_t last = c.attributes().integer("select_last_index", 0);
  ValueId y = c.add(
      type, {filled(c, x, neutral_of(c.dtype(0), sign))},
      {{"axis", static_cast<int64_t>(axis)}, {"keepdims", keep}, {"select_last_index", last}});
  if (last != 0) {
    const ValueId extent = dimension(c, c.extents_of(x), static_cast<int64_t>(axis));
    y = c.binary("Min", y, c.reshape(c.binary("Sub", extent, 1.0), {}));
  }
  std::vector<ExtentPart> shape = parts(c, x, 0, axis);
  if (keep != 0) shape.push_back({kNoValue, 1});
  shape = joined(std::move(shape), parts(c, x, axis + 1, rank));
  c.result(0, shape.empty() ? y : with_extents(c, y, join_extents(c, shape)));
  return ok_status();
}

}  // namespace

Status propagate_arg_max(ExpandContext& c) { return propagate_arg(c, "ArgMax", -1); }
Status propagate_arg_min(ExpandContext& c) { return propagate_arg(c, "ArgMin", 1); }
Status propagate_reduce_of_zeros(ExpandContext& c) { return propagate_filled(c, 0); }
Status propagate_reduce_log_sum_exp(ExpandContext& c) {
  return propagate_filled(c, neutral_of(c.dtype(0), -1));
}
Status propagate_reduce_prod(ExpandContext& c) { return propagate_filled(c, 1); }
Status propagate_reduce_max(ExpandContext& c) { return propagate_reduce(c, "ReduceMax", -1); }
Status propagate_reduce_min(ExpandContext& c) { return propagate_reduce(c, "ReduceMin", 1); }
Status propagate_reduce_sum(ExpandContext& c) { return propagate_reduce(c, "ReduceSum", 0); }

// The sum divided by how many elements there are; that of integers is rounded towards 0, as usual.
Status propagate_mean(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const Reduction reduction, reduction_of(c));
  const ValueId extents = actual_extents(c, c.input(0));
  const ValueId counts = c.add("Gather", {extents, c.integers(reduction.dims)});
  const ValueId count = c.cast(c.reduce("ReduceProd", counts, {0}, false), c.dtype(0));
  HONE_ASSIGN_OR_RETURN(const ValueId sum, reduced(c, "ReduceSum", reduction, 0));
  return reduction.give(c, c.binary("Div", sum, count));
}

}  // namespace hone::graph
