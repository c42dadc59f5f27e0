// Sequences and optional values, which exist only while a model is imported: each part is a value
// of its own, so that what computes them is all that is left. Positions have to be known.
#include "hone/graph/ops/sequence.h"

#include <algorithm>
#include <numeric>

#include "hone/graph/aggregates.h"
#include "hone/graph/integer_at.h"
#include "hone/graph/node_names.h"
#include "hone/graph/ops/loop_builder.h"
#include "hone/graph/ops/type_code.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {
namespace {

Result<Aggregate> any_sequence(const ExpandContext& c, size_t i) {
  const Aggregate* found = aggregate_of(c.input(i));
  if (found != nullptr && found->optional && found->parts.size() == 1)
    found = aggregate_of(found->parts[0]);
  if (found == nullptr || found->optional)
    return c.fail("operand {} is {}, expected a sequence", i,
                  found == nullptr ? "a tensor" : "an optional value");
  return *found;
}

// Returns a sequence of which each part is a value.
Result<Aggregate> sequence(ExpandContext& c, size_t i) {
  HONE_ASSIGN_OR_RETURN(const Aggregate found, any_sequence(c, i));
  if (std::optional<Aggregate> made = in_parts(c, found)) return *std::move(made);
  return c.unsupported(
      "a sequence that a loop which is not unrolled made: expected ConcatFromSequence, SequenceAt "
      "or SequenceLength");
}

Status set_result(ExpandContext& c, Aggregate aggregate, size_t i = 0) {
  c.result(i, add_aggregate(c, std::move(aggregate)));
  return ok_status();
}

Status check_part(const ExpandContext& c, const Aggregate& sequence, ValueId part) {
  if (aggregate_of(part) != nullptr) return c.fail("a sequence inside of a sequence");
  if (c.dtype_of(part) == sequence.dtype) return ok_status();
  return c.fail("a tensor of type {} in a sequence of type {}, expected tensors of one type",
                dtype_name(c.dtype_of(part)), dtype_name(sequence.dtype));
}

// The place that operand i names among `count` of them; `otherwise` if it is not given.
Result<int64_t> position(const ExpandContext& c, size_t i, int64_t count, int64_t otherwise) {
  if (!c.has(i)) return otherwise;
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> given, c.integers(i, "the position"));
  if (given.size() != 1) return c.fail("a position of {} elements", given.size());
  if (const auto place = normalize_axis(given[0], count)) return *place;
  if (count == 0) return c.fail("an empty sequence has no position {}", given[0]);
  return c.fail("position {}, expected {} to {}", given[0], -count, count - 1);
}

Status expand_empty(ExpandContext& c) {
  const int64_t code = c.attributes().integer("dtype", 1);
  const auto dtype = type_of_code(code);
  if (!dtype) return c.unsupported("a sequence of the element type {}", code);
  return set_result(c, {.dtype = *dtype});
}

Status expand_construct(ExpandContext& c) {
  Aggregate made = {.dtype = c.dtype(0)};
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    if (!c.has(i)) return c.fail("operand {} is missing", i);
    HONE_RETURN_IF_ERROR(check_part(c, made, c.input(i)));
    made.parts.push_back(c.input(i));
  }
  return set_result(c, std::move(made));
}

Status expand_insert(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(Aggregate made, sequence(c, 0));
  HONE_RETURN_IF_ERROR(check_part(c, made, c.input(1)));
  const auto count = std::ssize(made.parts);
  int64_t place = count;
  if (c.has(2)) {  // a new one may stand behind the last, and -1 is before the last
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> given, c.integers(2, "the position"));
    if (given.size() != 1 || given[0] < -count || given[0] > count)
      return c.fail("position {}, expected {} to {}", to_string(given), -count, count);
    place = given[0] < 0 ? given[0] + count : given[0];
  }
  made.parts.insert(made.parts.begin() + place, c.input(1));
  return set_result(c, std::move(made));
}

Status expand_erase(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(Aggregate made, sequence(c, 0));
  const auto count = std::ssize(made.parts);
  if (count == 0) return c.fail("nothing can be taken from an empty sequence");
  HONE_ASSIGN_OR_RETURN(const int64_t place, position(c, 1, count, count - 1));
  made.parts.erase(made.parts.begin() + place);
  return set_result(c, std::move(made));
}

ValueId number_of_rows(ExpandContext& c, ValueId rows) {
  return c.add("Gather", {c.add("Shape", {rows}), c.scalar(DType::kI64, 0)});
}

// Returns a place. A run fails in which it is not one of so many.
Result<ValueId> checked_place(ExpandContext& c, ValueId place, ValueId count) {
  const ValueId is_below = c.binary("Less", place, 0.0);
  const ValueId is_behind = c.add("Not", {c.binary("Less", place, count)});
  HONE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> made,
      LoopBuilder::add_fault(
          c, c.binary("Or", is_below, is_behind),
          {.beyond = fmt::format("{}: the sequence has no tensor at this position in this run",
                                 name_and_type(c.node()))},
          {place}));
  return made[0];
}

// Returns the place among the rows that operand i names: a negative one counts from the end of
// those that the run has.
Result<ValueId> place_of_row(ExpandContext& c, ValueId rows, size_t i) {
  const ValueId place = c.cast(c.reshape(c.input(i), {}), DType::kI64);
  const Tensor* known = c.constant_of(place);
  if (known != nullptr && c.extents_of(rows) == kNoValue && !c.graph().keeps_loops) {
    HONE_ASSIGN_OR_RETURN(const int64_t checked, position(c, i, c.shape_of(rows)[0], 0));
    return c.scalar(DType::kI64, static_cast<double>(checked));
  }
  const ValueId count = number_of_rows(c, rows);
  const bool counts_from_begin = known != nullptr && integer_at(*known, 0) >= 0;
  return checked_place(c, counts_from_begin ? place : from_begin(c, place, count), count);
}

Status expand_at(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const Aggregate from, any_sequence(c, 0));
  const bool is_known = c.constant_of(c.input(1)) != nullptr;
  const ValueId rows = is_known ? from.stacked : rows_of_parts(c, from);
  if (rows != kNoValue) {
    HONE_ASSIGN_OR_RETURN(const ValueId place, place_of_row(c, rows, 1));
    c.result(0, c.add("Gather", {rows, place}));
    return ok_status();
  }
  HONE_ASSIGN_OR_RETURN(const int64_t place, position(c, 1, std::ssize(from.parts), 0));
  c.result(0, from.parts[static_cast<size_t>(place)]);
  return ok_status();
}

Status expand_length(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const Aggregate from, any_sequence(c, 0));
  if (from.stacked == kNoValue)
    c.result(0, c.scalar(DType::kI64, static_cast<double>(from.parts.size())));
  else
    c.result(0, number_of_rows(c, from.stacked));
  return ok_status();
}

// Joins the rows of a tensor along an axis of theirs, or along a new one.
ValueId joined_rows(ExpandContext& c, ValueId rows, int64_t axis, bool fresh) {
  std::vector<int64_t> order(static_cast<size_t>(c.rank_of(rows)));
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin(), order.begin() + 1, order.begin() + 1 + axis);
  const ValueId moved = c.transpose(rows, order);
  if (fresh) return moved;
  Shape shape = c.shape_of(moved);
  shape.erase(shape.begin() + axis);
  shape[static_cast<size_t>(axis)] = -1;
  return c.add("Reshape", {moved, c.integers(shape)});
}

Status expand_concat(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const Aggregate from, any_sequence(c, 0));
  const bool is_stacked = from.stacked != kNoValue;
  if (from.parts.empty() && !is_stacked)
    return c.fail("an empty sequence, expected at least one tensor");
  const bool fresh = c.attributes().integer("new_axis", 0) != 0;
  const int64_t part_rank = is_stacked ? c.rank_of(from.stacked) - 1 : c.rank_of(from.parts[0]);
  const int64_t rank = part_rank + (fresh ? 1 : 0);
  const int64_t given = c.attributes().integer("axis", 0);
  const auto axis = normalize_axis(given, rank);
  if (!axis) return c.fail("axis {} for results of rank {}", given, rank);
  if (is_stacked) {
    c.result(0, joined_rows(c, from.stacked, *axis, fresh));
    return ok_status();
  }
  std::vector<ValueId> parts = from.parts;
  for (ValueId& part : parts) {
    if (fresh) part = c.add("Unsqueeze", {part, c.integers({*axis})});
  }
  c.result(0, c.add("Concat", parts, {{"axis", *axis}}));
  return ok_status();
}

// Lengths along the axis: of a scalar, of that many each; of a list, as it says.
Result<std::vector<int64_t>> split_lengths(const ExpandContext& c, int64_t extent) {
  const auto many = [&](int64_t parts) {
    return c.unsupported("{} parts, at most {} are supported", parts, kMostParts);
  };
  if (!c.has(1) && extent > kMostParts) return many(extent);
  if (!c.has(1)) return std::vector<int64_t>(static_cast<size_t>(extent), 1);
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> given, c.integers(1, "split"));
  int64_t sum = 0;
  std::vector<int64_t> lengths = given;
  if (c.rank(1) == 0) {
    if (given[0] < 1) return c.fail("split is {}, expected 1 or more", given[0]);
    lengths.clear();
    if (const int64_t parts = (extent - 1) / given[0] + 1; parts > kMostParts) return many(parts);
    for (int64_t at = 0; at < extent; at += given[0])
      lengths.push_back(std::min(given[0], extent - at));
  }
  if (std::ssize(lengths) > kMostParts) return many(std::ssize(lengths));
  for (const int64_t length : lengths) {
    if (length < 0 || length > extent)
      return c.fail("split is {}, expected lengths from 0 to {}", to_string(given), extent);
    sum += length;
  }
  if (sum != extent)
    return c.fail("split is {}, expected lengths whose sum is {}", to_string(given), extent);
  return lengths;
}

Status expand_split(ExpandContext& c) {
  const int64_t given = c.attributes().integer("axis", 0);
  const auto axis = normalize_axis(given, c.rank(0));
  if (!axis) return c.fail("axis {} of a value of shape {}", given, to_string(c.shape(0)));
  if (is_decided(c, 0, static_cast<size_t>(*axis)))
    return c.unsupported("data of which other data decide how many elements are split");
  HONE_ASSIGN_OR_RETURN(const auto lengths,
                        split_lengths(c, c.shape(0)[static_cast<size_t>(*axis)]));
  const bool squeezes = !c.has(1) && c.attributes().integer("keepdims", 1) == 0;
  Aggregate made = {.dtype = c.dtype(0)};
  int64_t at = 0;
  for (const int64_t length : lengths) {
    ValueId part = c.slice(c.input(0), *axis, at, at + length);
    if (squeezes) part = c.add("Squeeze", {part, c.integers({*axis})});
    made.parts.push_back(part);
    at += length;
  }
  return set_result(c, std::move(made));
}

// Returns the operands of a SequenceMap by parts: those of a sequence, or one tensor for all.
Result<std::vector<Aggregate>> mapped_operands(ExpandContext& c, size_t count,
                                               const Aggregate& first) {
  std::vector<Aggregate> operands = {first};
  for (size_t i = 1; i < count; ++i) {
    if (!c.has(i)) return c.fail("operand {} is missing", i);
    if (aggregate_of(c.input(i)) == nullptr) {
      operands.push_back({.parts = std::vector(first.parts.size(), c.input(i))});
      continue;
    }
    HONE_ASSIGN_OR_RETURN(Aggregate of, sequence(c, i));
    if (of.parts.size() != first.parts.size())
      return c.fail("sequences of {} and {} parts", first.parts.size(), of.parts.size());
    operands.push_back(std::move(of));
  }
  return operands;
}

// Builds the body for the k-th part of each sequence; operands that are tensors are the same for
// all.
Status expand_map(ExpandContext& c) {
  const Subgraph* graph = c.attributes().find<Subgraph>("body");
  if (graph == nullptr) return c.fail("no attribute 'body'");
  const SubgraphBody& body = *graph->body;
  HONE_ASSIGN_OR_RETURN(const Aggregate first, sequence(c, 0));
  if (body.outputs.size() < c.num_outputs() || body.inputs.size() > c.num_inputs() ||
      body.inputs.empty())
    return c.fail("a body with {} inputs and {} results", body.inputs.size(), body.outputs.size());
  HONE_ASSIGN_OR_RETURN(const std::vector<Aggregate> operands,
                        mapped_operands(c, body.inputs.size(), first));
  std::vector<Aggregate> made(c.num_outputs());
  for (size_t k = 0; k < first.parts.size(); ++k) {
    std::vector<ValueId> arguments;
    for (const Aggregate& of : operands) arguments.push_back(of.parts[k]);
    const std::vector<ValueId> results = c.inline_body(body, arguments);
    HONE_RETURN_IF_ERROR(c.status());
    for (size_t i = 0; i < made.size(); ++i) {
      made[i].dtype = c.dtype_of(results[i]);
      made[i].parts.push_back(results[i]);
    }
  }
  for (size_t i = 0; i < made.size(); ++i) HONE_RETURN_IF_ERROR(set_result(c, made[i], i));
  return ok_status();
}

Status expand_optional(ExpandContext& c) {
  Aggregate made = {.optional = true};
  if (c.has(0)) made.parts = {c.input(0)};
  return set_result(c, std::move(made));
}

// What an optional value holds; another value holds itself.
Status expand_get_element(ExpandContext& c) {
  const Aggregate* found = aggregate_of(c.input(0));
  if (found != nullptr && found->optional && found->parts.empty())
    return c.fail(
        "an optional value that holds nothing, expected one with an element, as an If on "
        "OptionalHasElement makes sure");
  c.result(0, found != nullptr && found->optional ? found->parts[0] : c.input(0));
  return ok_status();
}

Status expand_has_element(ExpandContext& c) {
  const Aggregate* found = c.has(0) ? aggregate_of(c.input(0)) : nullptr;
  const bool empty = !c.has(0) || (found != nullptr && found->optional && found->parts.empty());
  c.result(0, c.scalar(DType::kBool, empty ? 0 : 1));
  return ok_status();
}

}  // namespace

ValueId rows_of_parts(ExpandContext& c, const Aggregate& sequence) {
  if (sequence.stacked != kNoValue) return sequence.stacked;
  if (sequence.optional || sequence.parts.empty()) return kNoValue;
  std::vector<ValueId> rows;
  for (const ValueId part : sequence.parts) {
    if (aggregate_of(part) != nullptr || c.extents_of(part) != kNoValue ||
        c.shape_of(part) != c.shape_of(sequence.parts[0]))
      return kNoValue;
    rows.push_back(c.add("Unsqueeze", {part, c.integers({0})}));
  }
  return c.add("Concat", rows, {{"axis", int64_t{0}}});
}

std::span<const Op> sequence_ops() {
  constexpr int kAny = 100'000;
  static const Op ops[] = {
      expanded_op("SequenceEmpty", 11, {0, 0}, "dtype:i", expand_empty),
      expanded_op("SequenceConstruct", 11, {1, kAny}, "", expand_construct),
      expanded_op("SequenceInsert", 11, {2, 3}, "", expand_insert),
      expanded_op("SequenceErase", 11, {1, 2}, "", expand_erase),
      expanded_op("SequenceAt", 11, {2, 2}, "", expand_at),
      expanded_op("SequenceLength", 11, {1, 1}, "", expand_length),
      expanded_op("ConcatFromSequence", 11, {1, 1}, "axis:i new_axis:i", expand_concat),
      expanded_op("SplitToSequence", 11, {1, 2}, "axis:i keepdims:i", expand_split),
      expanded_op("SequenceMap", 17, {1, kAny, kAny}, "body:g",
                  expand_map),  // captured values are operands, too
      expanded_op("Optional", 15, {0, 1}, "", expand_optional),
      expanded_op("OptionalGetElement", 15, {1, 1}, "", expand_get_element),
      expanded_op("OptionalHasElement", 15, {0, 1}, "", expand_has_element),
  };
  return ops;
}

}  // namespace hone::graph
