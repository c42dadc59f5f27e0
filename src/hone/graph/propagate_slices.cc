// Slice of values whose shape depends on data, and Slice with numbers that a run computes. Where a
// run computes the begin, the elements are gathered. There are as many of them at most as along the
// whole axis, and the run says how many; but where the end is the begin and a constant number, as
// exporters write x[i : i + 1], there are so many in every run, or the run fails.
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "hone/graph/known_elements.h"
#include "hone/graph/node_names.h"
#include "hone/graph/ops/loop_builder.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {
namespace {

// A step over more elements than any axis has takes the first one only, as any longer step does,
// with which a run could not compute.
constexpr int64_t kMostStep = int64_t{1} << 40;

// One of the numbers of a Slice.
struct Number {
  int64_t known = 0;
  ValueId run = kNoValue;  // i64 [1], if a run computes it
};

// A Slice along one axis: which of its elements it takes.
struct Cut {
  size_t axis = 0;
  Number start, end;
  int64_t step = 1;
  std::optional<int64_t> span;  // end - start, if that is known
};

// Returns starts or ends.
Result<std::vector<Number>> numbers_of(ExpandContext& c, size_t operand, const char* name) {
  std::vector<Number> numbers;
  if (!c.has(operand) || c.constant_of(c.input(operand)) != nullptr) {
    HONE_ASSIGN_OR_RETURN(const auto known, c.integers_or_attribute(operand, name));
    for (size_t i = 0; known && i < known->size(); ++i) numbers.push_back({(*known)[i]});
    return numbers;
  }
  if (c.shape(operand).size() != 1 || varies(c, operand) || is_float(c.dtype(operand)))
    return c.fail("{} that are no vector of integers", name);
  for (int64_t i = 0; i < c.shape(operand)[0]; ++i) {
    const auto known = known_element(c.graph(), c.nodes(), {c.input(operand), i});
    numbers.push_back(known ? Number{*known}
                            : Number{0, c.cast(dimension(c, c.input(operand), i), DType::kI64)});
  }
  return numbers;
}

Result<std::vector<Cut>> cuts_of(ExpandContext& c) {
  const size_t rank = c.shape(0).size();
  HONE_ASSIGN_OR_RETURN(const std::vector<Number> starts, numbers_of(c, 1, "starts"));
  HONE_ASSIGN_OR_RETURN(const std::vector<Number> ends, numbers_of(c, 2, "ends"));
  HONE_ASSIGN_OR_RETURN(const auto axes, c.integers_or_attribute(3, "axes"));
  HONE_ASSIGN_OR_RETURN(const auto steps, c.integers_or_attribute(4, "steps"));
  const size_t count = starts.size();
  if (ends.size() != count || (axes && axes->size() != count) || (steps && steps->size() != count))
    return c.fail("starts, ends, axes and steps, expected as many of each");
  if (steps && std::count(steps->begin(), steps->end(), 0) > 0) return c.fail("a step of 0");
  std::vector<Cut> cuts;
  for (size_t i = 0; i < count; ++i) {
    const auto axis =
        normalize_axis(axes ? (*axes)[i] : static_cast<int64_t>(i), static_cast<int64_t>(rank));
    if (!axis) return c.fail("axis of a value of rank {}", rank);
    const auto is_same = [&](const Cut& cut) { return cut.axis == static_cast<size_t>(*axis); };
    if (std::any_of(cuts.begin(), cuts.end(), is_same)) return c.fail("axis {} twice", *axis);
    const int64_t step = steps ? std::clamp((*steps)[i], -kMostStep, kMostStep) : 1;
    Cut cut{static_cast<size_t>(*axis), starts[i], ends[i], step, {}};
    if (cut.start.run != kNoValue && cut.end.run != kNoValue) {
      const auto element = static_cast<int64_t>(i);
      cut.span = difference_of_elements(c.graph(), c.nodes(), {c.input(2), element},
                                        {c.input(1), element});
    }
    cuts.push_back(cut);
  }
  return cuts;
}

ValueId value_of(ExpandContext& c, const Number& number) {
  return number.run != kNoValue ? number.run : c.integers({number.known});
}

// Returns (length + step - 1) / step, and 0 for less than nothing.
ValueId count_of(ExpandContext& c, ValueId length, int64_t step) {
  if (step != 1)
    length = c.binary("Div", c.binary("Add", length, c.integers({step - 1})), c.integers({step}));
  return c.binary("Max", length, c.integers({0}));
}

// Returns whether a run computes which element is taken first.
bool begins_where_a_run_says(const ExpandContext& c, const Cut& cut) {
  if (cut.start.run != kNoValue) return true;
  return (cut.step < 1 || cut.start.known < 0) && !known_extent(c, 0, cut.axis);
}

// The begin of a cut, and the number of elements up to its end, in steps of 1; it is below 0 if the
// end lies on the other side.
struct Span {
  ValueId begin, length;
};

Span span_of(ExpandContext& c, const Cut& cut, ValueId extent) {
  const bool is_backward = cut.step < 0;
  const ValueId most = is_backward ? c.binary("Sub", extent, c.integers({1})) : extent;
  const auto inside = [&](const Number& number, int64_t least) {
    const ValueId place = from_begin(c, value_of(c, number), extent);
    return c.binary("Max", c.binary("Min", place, most), c.integers({least}));
  };
  const ValueId begin = inside(cut.start, 0), end = inside(cut.end, is_backward ? -1 : 0);
  if (!is_backward) return {begin, c.binary("Sub", end, begin)};
  return {begin, c.binary("Min", c.binary("Sub", begin, end), extent)};
}

// Cuts y where the begin is known. Returns how many elements are left.
ExtentPart cut_at_known(ExpandContext& c, ValueId& y, const Cut& cut, ValueId extent) {
  const auto axis = static_cast<int64_t>(cut.axis);
  const int64_t most = c.shape_of(y)[cut.axis];
  const bool has_end = cut.end.run == kNoValue;
  if (has_end && known_extent(c, 0, cut.axis)) {
    y = c.slice(y, axis, cut.start.known, cut.end.known, cut.step);
    return ExtentPart{kNoValue, c.shape_of(y)[cut.axis]};
  }
  if (cut.step < 0) {
    y = c.slice(y, axis, cut.start.known, -kMostStep, cut.step);  // an end before all elements
    return ExtentPart{count_of(c, span_of(c, cut, extent).length, -cut.step), 0};
  }
  int64_t start = cut.start.known;
  if (start < 0) start = std::max<int64_t>(start + most, 0);
  const bool is_near = has_end && cut.end.known >= 0;
  y = c.slice(y, axis, std::min(start, most), is_near ? std::min(cut.end.known, most) : most,
              cut.step);
  const ValueId stop = is_near ? c.integers({std::min(cut.end.known, most)})
                               : from_begin(c, value_of(c, cut.end), extent);
  const ValueId length = c.binary("Add", c.binary("Min", extent, stop), c.integers({-start}));
  return ExtentPart{count_of(c, length, cut.step), 0};
}

// Returns `begin` as it is in all runs that do not fail, as `length` elements are as many as the
// cut takes.
Result<ValueId> checked_begin(ExpandContext& c, const Cut& cut, ValueId begin, ValueId length) {
  const ValueId wanted = c.binary("Sub", cut.end.run, cut.start.run);
  const ValueId fails = c.add("Not", {c.reshape(c.binary("Equal", length, wanted), {})});
  HONE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> made,
      LoopBuilder::add_fault(
          c, fails,
          {.beyond = fmt::format("{}: its begin along axis {}, which the run computed, does not "
                                 "leave as many elements as it takes",
                                 name_and_type(c.node()), cut.axis)},
          {begin}));
  return made[0];
}

// Cuts y where a run computes the begin, and says of what it is then a part. Returns how many
// elements are left.
Result<ExtentPart> cut_at_computed(ExpandContext& c, ValueId& y, const Cut& cut, ValueId extent,
                                   std::optional<RunSlice>& slice) {
  const auto axis = static_cast<int64_t>(cut.axis);
  const int64_t all = c.shape_of(y)[cut.axis];
  if (all == 0) return ExtentPart{kNoValue, 0};
  const bool is_backward = cut.step < 0;
  const bool is_whole = !is_backward && cut.span && *cut.span > 0 && *cut.span <= all;
  auto [begin, length] = span_of(c, cut, extent);
  if (is_whole) {
    HONE_ASSIGN_OR_RETURN(begin, checked_begin(c, cut, begin, length));
  }
  const int64_t span = is_whole ? *cut.span : all;
  ValueId places = numbers_from_0(c, span);
  places = is_backward ? c.binary("Sub", begin, places) : c.binary("Add", places, begin);
  const int64_t step = std::abs(cut.step);
  // The places are sliced by an operator, whose rule says how many there are at other sizes.
  if (step != 1) places = c.slice(places, 0, 0, span, step);
  const ValueId last = c.binary("Sub", extent, c.integers({1}));
  const ValueId safe = c.binary("Max", c.binary("Min", places, last), c.integers({0}));
  // A further cut is not one of what the slice before was taken from.
  slice = is_whole ? std::nullopt : std::optional(RunSlice{y, begin, axis, cut.step});
  y = c.add("Gather", {y, safe}, {{"axis", axis}});
  const int64_t most = c.shape_of(safe)[0];
  return is_whole ? ExtentPart{kNoValue, most} : ExtentPart{count_of(c, length, step), 0};
}

}  // namespace

Status propagate_slice(ExpandContext& c) {
  const ValueId x = c.input(0);
  HONE_ASSIGN_OR_RETURN(std::vector<Cut> cuts, cuts_of(c));
  std::stable_partition(cuts.begin(), cuts.end(),
                        [&](const Cut& cut) { return !begins_where_a_run_says(c, cut); });
  ValueId y = without_extents(c, x);
  std::vector<ExtentPart> shape = parts(c, x, 0, c.shape(0).size());
  std::optional<RunSlice> slice;
  for (const Cut& cut : cuts) {
    const ValueId extent = dimension(c, actual_extents(c, x), static_cast<int64_t>(cut.axis));
    if (begins_where_a_run_says(c, cut)) {
      HONE_ASSIGN_OR_RETURN(shape[cut.axis], cut_at_computed(c, y, cut, extent, slice));
    } else {
      shape[cut.axis] = cut_at_known(c, y, cut, extent);
    }
  }
  const bool is_static = std::all_of(
      shape.begin(), shape.end(), [](const ExtentPart& part) { return part.extents == kNoValue; });
  if (!is_static) {
    y = with_extents(c, y, join_extents(c, shape));
    if (c.extents_of(y) != kNoValue) c.graph().value(y).slice = slice;
  }
  c.result(0, y);
  return ok_status();
}

}  // namespace hone::graph
