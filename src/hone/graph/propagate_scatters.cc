// ScatterElements and ScatterND of values whose shape depends on data: updates that are not there
// change nothing.
#include <algorithm>
#include <optional>

#include "hone/graph/neutral.h"
#include "hone/graph/node_names.h"
#include "hone/graph/ops/common_shape.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {
namespace {

// Returns the update that changes nothing; of the reduction "none" there is none.
std::optional<double> neutral_update(std::string_view reduction, DType dtype) {
  if (reduction == "mul") return 1;
  if (reduction == "add") return is_float(dtype) ? -0.0 : 0;
  if (reduction == "max" || reduction == "min")
    return neutral_of(dtype, reduction == "max" ? -1 : 1);
  return std::nullopt;
}

// Returns x with one more element along a dimension, which may be anything.
ValueId with_spare(ExpandContext& c, ValueId x, size_t axis) {
  Shape shape = c.shape_of(x);
  shape[axis] = 1;
  return c.add("Concat", {x, uniform(c, c.dtype_of(x), shape, 0)},
               {{"axis", static_cast<int64_t>(axis)}});
}

// Returns the extents of indices, and of their updates, in their first dimensions. A run fails in
// which they differ.
Result<ValueId> extents_of_updates(ExpandContext& c, size_t dims) {
  const auto first_of = [&](size_t i) { return join_extents(c, parts(c, c.input(i), 0, dims)); };
  ExtentsCheck check{.extents = {first_of(1), first_of(2)},
                     .dims = {},
                     .text = fmt::format("{}: its indices and its updates have different shapes in "
                                         "this run",
                                         name_and_type(c.node()))};
  for (size_t d = 0; d < dims; ++d) {
    const auto dim = static_cast<int64_t>(d);
    check.dims.push_back(
        !are_same_element(c.graph(), c.nodes(), {check.extents[0], dim}, {check.extents[1], dim}));
  }
  if (std::find(check.dims.begin(), check.dims.end(), true) == check.dims.end())
    return check.extents[0];
  HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> made, check_extents(c, check, {}));
  return made[0];
}

}  // namespace

// Updates that are not there change nothing: they add 0 and the like to some element, or write one
// that is left out then.
Status propagate_scatter_elements(ExpandContext& c) {
  const ValueId data = c.input(0), indices = c.input(1);
  HONE_ASSIGN_OR_RETURN(const size_t axis, axis_of(c, 0, c.shape(0).size()));
  const auto dim = static_cast<int64_t>(axis);
  const std::string reduction = c.attributes().text("reduction", "none");
  const std::optional<double> fill = neutral_update(reduction, c.dtype(2));
  const ValueId extents = varies(c, 1) ? c.extents_of(indices) : c.extents_of(c.input(2));
  const bool is_spared = extents != kNoValue && !fill;
  ValueId x = without_extents(c, data), places = without_extents(c, indices);
  ValueId updates = without_extents(c, c.input(2));
  // Negative indices count from the end that a run has.
  if (varies(c, 0) || is_spared) {
    const ValueId extent = dimension(c, actual_extents(c, data), dim);
    places = indices_from_begin(c, places, c.reshape(extent, {}));
  }
  if (extents != kNoValue) {
    HONE_ASSIGN_OR_RETURN(const ValueId checked, extents_of_updates(c, c.shape(1).size()));
    const auto beyond = is_spared ? static_cast<double>(c.shape(0)[axis]) : 0;
    places = filled(c, with_extents(c, places, checked), beyond);
    if (fill) updates = filled(c, with_extents(c, updates, checked), *fill);
  }
  if (is_spared) x = with_spare(c, x, axis);
  ValueId y =
      c.add("ScatterElements", {x, places, updates}, {{"axis", dim}, {"reduction", reduction}});
  if (is_spared) y = c.slice(y, dim, 0, c.shape(0)[axis]);
  c.result(0, varies(c, 0) ? with_extents(c, y, c.extents_of(data)) : y);
  return ok_status();
}

namespace {

// Indices [n, depth] and updates [n, ...] of which there are `count` (i64 [1]).
struct Updates {
  ValueId indices, updates, count;
};

// Returns them with copies of the last one in place of those that are not there, as the last one of
// several with one index counts; if there is none, of an element of the data, which changes
// nothing.
Updates repeated_last(ExpandContext& c, ValueId data, const Updates& given) {
  const Shape shape = c.shape_of(given.updates);
  const auto there = [&](size_t rank) {
    Shape rows(rank, 1);
    rows[0] = shape[0];
    return c.binary("Less", places_along(c, rows, 0), c.reshape(given.count, {}));
  };
  const ValueId last = c.binary("Max", c.binary("Sub", given.count, 1.0), 0.0);
  const auto last_of = [&](ValueId rows) {
    return c.add("Gather", {rows, last}, {{"axis", int64_t{0}}});
  };
  const ValueId index = last_of(given.indices);
  const ValueId any = c.reshape(c.binary("Greater", given.count, 0.0), {});
  const ValueId update =
      c.add("Where", {any, last_of(given.updates), c.add("GatherND", {data, index})});
  return {c.add("Where", {there(2), given.indices, index}),
          c.add("Where", {there(shape.size()), given.updates, update}), given.count};
}

}  // namespace

// Updates that are not there write what the last one does, or add nothing.
Status propagate_scatter_nd(ExpandContext& c) {
  const ValueId data = without_extents(c, c.input(0)), of_data = c.extents_of(c.input(0));
  if (c.shape(1).empty() || c.shape(2).empty()) return c.fail("indices or updates of rank 0");
  if (num_elements(c.shape(1)) == 0 || num_elements(c.shape(2)) == 0) {
    c.result(0, c.input(0));
    return ok_status();
  }
  const auto give = [&](ValueId y) {
    c.result(0, of_data == kNoValue ? y : with_extents(c, y, of_data));
    return ok_status();
  };
  // Negative indices count from the end that a run has.
  const auto depth = static_cast<size_t>(c.shape(1).back());
  if (depth > c.shape(0).size()) return c.fail("indices of {} dimensions", depth);
  const auto from_begin_of_data = [&](ValueId indices) {
    if (of_data == kNoValue) return indices;
    const ValueId extents = join_extents(c, parts(c, c.input(0), 0, depth));
    return indices_from_begin(c, indices, extents);
  };
  if (!varies(c, 1) && !varies(c, 2)) {
    return give(c.add("ScatterND", {data, from_begin_of_data(c.input(1)), c.input(2)},
                      {{"reduction", c.attributes().text("reduction", "none")}}));
  }
  const std::string reduction = c.attributes().text("reduction", "none");
  const std::optional<double> fill = neutral_update(reduction, c.dtype(2));
  for (size_t d = 1; d < c.shape(2).size(); ++d)
    if (is_decided(c, 2, d))
      return c.unsupported("updates of which data decide dimension {}, expected the first alone",
                           d);
  if (c.shape(1).size() != 2 || c.shape(1)[0] != c.shape(2)[0])
    return c.unsupported(
        "indices of rank {} whose number depends on data, expected [n, depth] for [n, ...] updates",
        c.shape(1).size());
  HONE_ASSIGN_OR_RETURN(const ValueId extents, extents_of_updates(c, 1));
  const ValueId count = dimension(c, extents, 0);
  const auto cut = [&](ValueId x, double number) {
    Shape rest = c.shape_of(x);
    rest.erase(rest.begin());
    const ValueId own = c.add("Concat", {count, c.integers(rest)}, {{"axis", int64_t{0}}});
    return filled(c, with_extents(c, without_extents(c, x), own), number);
  };
  Updates made{from_begin_of_data(cut(c.input(1), 0)), cut(c.input(2), fill.value_or(0)), count};
  if (!fill) made = repeated_last(c, data, made);
  return give(c.add("ScatterND", {data, made.indices, made.updates}, {{"reduction", reduction}}));
}

}  // namespace hone::graph
