// Split: slices along an axis. Where data decide its extent, or the run computes the lengths, the
// parts begin and end where the run says, and a run fails if its lengths are not those of all
// elements.
#include "hone/graph/node_names.h"
#include "hone/graph/ops/indices.h"
#include "hone/graph/ops/loop_builder.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {
namespace {

// Returns the lengths that the node gives, if it does, or else those of equal parts, of which the
// last ones may be shorter.
Result<std::vector<int64_t>> split_lengths(const InferContext& c, int64_t extent, bool is_most) {
  const auto parts = static_cast<int64_t>(c.num_outputs());
  HONE_ASSIGN_OR_RETURN(const auto given, c.integers_or_attribute(1, "split"));
  const int64_t declared = c.attributes().integer("num_outputs", parts);
  if (given && c.attributes().has("num_outputs"))
    return c.fail("both split and num_outputs are given");
  std::vector<int64_t> lengths;
  if (given) {
    lengths = *given;
  } else {
    const int64_t length = (extent + parts - 1) / parts;
    for (int64_t at = 0; at < parts; ++at)
      lengths.push_back(std::max<int64_t>(0, std::min(length, extent - at * length)));
  }
  int64_t sum = 0;
  bool valid = declared == parts && static_cast<int64_t>(lengths.size()) == parts;
  for (const int64_t length : lengths) {
    valid = valid && length >= 0 && length <= extent;
    sum += valid ? length : 0;
  }
  if (!valid || (is_most ? sum > extent : sum != extent)) {
    return c.fail("{} elements in {} results of lengths {}", extent, parts, to_string(lengths));
  }
  return lengths;
}

// Declares the parts between these places, i64 [1].
void declare_parts(ExpandContext& c, size_t axis, const std::vector<ValueId>& places) {
  for (size_t i = 0; i + 1 < places.size(); ++i) {
    if (!c.wants(i)) continue;
    c.result(i, c.add("Slice", {c.input(0), places[i], places[i + 1],
                                c.integers({static_cast<int64_t>(axis)})}));
  }
}

// Declares equal parts of as many elements as data decide.
Status split_decided(ExpandContext& c, size_t axis) {
  const auto parts = static_cast<int64_t>(c.num_outputs());
  const ValueId extent = dimension(c, c.extents_of(c.input(0)), static_cast<int64_t>(axis));
  const ValueId length = c.binary("Div", c.binary("Add", extent, static_cast<double>(parts - 1)),
                                  static_cast<double>(parts));
  std::vector<ValueId> places = {c.integers({0})};
  for (int64_t i = 1; i < parts; ++i)
    places.push_back(c.binary("Min", c.binary("Mul", length, static_cast<double>(i)), extent));
  places.push_back(extent);
  declare_parts(c, axis, places);
  return ok_status();
}

// Returns the lengths of a run. It fails where they are not those of all elements.
Result<ValueId> checked_lengths(ExpandContext& c, ValueId lengths, size_t axis) {
  const ValueId extent = dimension(c, actual_extents(c, c.input(0)), static_cast<int64_t>(axis));
  const ValueId is_all = c.binary("Equal", c.reduce("ReduceSum", lengths, {0}), extent);
  const ValueId is_below = c.binary("Less", c.reduce("ReduceMin", lengths, {0}), 0.0);
  HONE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> made,
      LoopBuilder::add_fault(
          c, c.reshape(c.binary("Or", is_below, c.add("Not", {is_all})), {}),
          {.beyond = fmt::format("{}: the lengths of its parts are negative, or do not add up to "
                                 "the extent of axis {} in this run",
                                 name_and_type(c.node()), axis)},
          {lengths}));
  return made[0];
}

// Declares parts whose lengths a run computes.
Status split_as_computed(ExpandContext& c, size_t axis) {
  if (c.dtype(1) != DType::kI64 || c.shape(1) != Shape{static_cast<int64_t>(c.num_outputs())} ||
      varies(c, 1))
    return c.fail("lengths {} {} for {} results", dtype_name(c.dtype(1)), to_string(c.shape(1)),
                  c.num_outputs());
  HONE_ASSIGN_OR_RETURN(const ValueId lengths, checked_lengths(c, c.input(1), axis));
  std::vector<ValueId> places = {c.integers({0})};
  for (int64_t i = 0; i < c.shape(1)[0]; ++i)
    places.push_back(c.binary("Add", places.back(), dimension(c, lengths, i)));
  declare_parts(c, axis, places);
  return ok_status();
}

// Declares the parts of no elements, which have none, whatever a run computes.
Status split_nothing(ExpandContext& c) {
  for (size_t i = 0; i < c.num_outputs(); ++i)
    if (c.wants(i)) c.result(i, c.input(0));
  return ok_status();
}

// Declares parts whose lengths the model gives, of as many elements as data decide. The lengths
// that were checked are their extents, so that the check is part of what they are computed from.
Status split_as_given(ExpandContext& c, size_t axis, const std::vector<int64_t>& lengths) {
  HONE_ASSIGN_OR_RETURN(const ValueId checked, checked_lengths(c, c.integers(lengths), axis));
  const ValueId x = without_extents(c, c.input(0));
  bool others_known = true;
  for (size_t d = 0; d < c.shape(0).size(); ++d)
    others_known = others_known && (d == axis || known_extent(c, 0, d));
  int64_t begin = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int64_t end = begin + lengths[i];
    if (c.wants(i) && lengths[i] == 0) {
      c.result(i, c.slice(others_known ? x : c.input(0), static_cast<int64_t>(axis), begin, end));
    } else if (c.wants(i)) {
      std::vector<ExtentPart> extents = parts(c, c.input(0), 0, c.shape(0).size());
      extents[axis] = {checked, static_cast<int64_t>(i)};
      c.result(i, with_extents(c, c.slice(x, static_cast<int64_t>(axis), begin, end),
                               join_extents(c, extents)));
    }
    begin = end;
  }
  return ok_status();
}

Status expand_split(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const size_t axis, axis_attribute(c, 0));
  const bool is_given = c.has(1) || c.attributes().has("split");
  if (c.has(1) && c.constant_of(c.input(1)) == nullptr)
    return c.shape(0)[axis] > 0 ? split_as_computed(c, axis) : split_nothing(c);
  const bool is_decided = varies(c, 0) && !known_extent(c, 0, axis);
  HONE_ASSIGN_OR_RETURN(const auto lengths, split_lengths(c, c.shape(0)[axis], is_decided));
  if (is_decided) return is_given ? split_as_given(c, axis, lengths) : split_decided(c, axis);
  int64_t begin = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (c.wants(i)) {
      c.result(i, c.slice(c.input(0), static_cast<int64_t>(axis), begin, begin + lengths[i]));
    }
    begin += lengths[i];
  }
  return ok_status();
}

Op split(int since, int until, int max_inputs, std::string_view attributes) {
  return {.name = "Split",
          .since = since,
          .until = until,
          .max_inputs = max_inputs,
          .max_outputs = 1 << 16,
          .attributes = attributes,
          .expand = expand_split};
}

}  // namespace

std::span<const Op> split_ops() {
  static const Op ops[] = {
      split(2, 12, 1, "axis:i split:is"),
      split(13, 17, 2, "axis:i"),
      split(18, kMaxOpset, 2, "axis:i num_outputs:i"),
  };
  return ops;
}

}  // namespace hone::graph
