// Tile, Pad, CenterCropPad, GatherElements and Range of what data decide: elements come from
// places, or are made from places, that follow from the extents of a run.
#include <algorithm>

#include "hone/graph/integer_at.h"
#include "hone/graph/ops/pad.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {
namespace {

constexpr const char* kMadeForOneShape = "data whose shape depends on other data";

// Returns an extent of operand 0, by which may be divided, as a scalar.
ValueId divisor_of(ExpandContext& c, size_t d) {
  const ValueId extent = dimension(c, c.extents_of(c.input(0)), static_cast<int64_t>(d));
  return c.reshape(divisor(c, extent), {});
}

// Returns the elements of x at these places (i64 [n]) along a dimension.
ValueId at_places(ExpandContext& c, ValueId x, ValueId places, size_t d) {
  return c.add("Gather", {x, places}, {{"axis", static_cast<int64_t>(d)}});
}

// Returns, for numbers of elements counted from the first one that is no padding, which element is
// read there. `mode` is one of Pad that repeats elements.
ValueId padded_places(ExpandContext& c, ValueId numbers, const std::string& mode, ValueId extent) {
  if (mode == "wrap") return c.binary("Mod", numbers, extent);
  const ValueId last = c.binary("Sub", extent, 1.0);
  if (mode == "edge") return c.binary("Max", c.binary("Min", numbers, last), 0.0);
  const ValueId period = c.binary("Max", c.binary("Mul", last, 2.0), 1.0);
  const ValueId phase = c.binary("Mod", numbers, period);
  return c.binary("Min", phase, c.binary("Sub", period, phase));
}

// Returns x, which has no extents, with padding of elements of its own around dimension d of
// operand 0, of which data decide the extent.
ValueId padded(ExpandContext& c, ValueId x, size_t d, int64_t low, int64_t high,
               const std::string& mode) {
  const int64_t most = c.shape_of(x)[d];
  const ValueId numbers = c.binary(
      "Sub", numbers_from_0(c, std::max<int64_t>(most + low + high, 0)), static_cast<double>(low));
  const ValueId places = padded_places(c, numbers, mode, divisor_of(c, d));
  return at_places(c, x, c.binary("Min", places, static_cast<double>(most - 1)), d);
}

// Returns the extent of dimension d after so many elements were added.
ExtentPart longer(ExpandContext& c, size_t d, int64_t more) {
  const ValueId extent = dimension(c, c.extents_of(c.input(0)), static_cast<int64_t>(d));
  if (more == 0) return {extent, 0};
  return {c.binary("Max", c.binary("Add", extent, static_cast<double>(more)), 0.0), 0};
}

}  // namespace

Status propagate_pad(ExpandContext& c) {
  for (size_t i = 1; i < c.num_inputs(); ++i)
    if (varies(c, i)) return c.unsupported("operand {} whose shape depends on data", i);
  const std::string mode = c.attributes().text("mode", "constant");
  HONE_ASSIGN_OR_RETURN(Pads pads, pads_of(c));
  const bool repeats = mode != "constant";
  if (c.has(2) && num_elements(c.shape(2)) != 1)
    return c.fail("a fill value of shape {}", to_string(c.shape(2)));
  const ValueId value = c.has(2) ? c.reshape(c.input(2), {})
                                 : c.scalar(c.dtype(0), c.attributes().number("value", 0));
  ValueId x = repeats ? without_extents(c, c.input(0)) : filled_with(c, c.input(0), value);
  std::vector<ExtentPart> shape;
  for (size_t d = 0; d < c.shape(0).size(); ++d) {
    const int64_t more = pads.low[d] + pads.high[d];
    if (!is_decided(c, 0, d)) {
      shape.push_back({kNoValue, c.shape(0)[d] + more});
      continue;
    }
    // The pads of a node that another operator is made of may follow from the largest shape.
    if (c.node().made_for != nullptr && pads.any(d)) return c.unsupported("{}", kMadeForOneShape);
    shape.push_back(longer(c, d, more));
    if (!repeats || !pads.any(d)) continue;
    if (pads.low[d] < 0 || pads.high[d] < 0 || c.shape(0)[d] == 0)
      return c.unsupported("mode '{}' with pads below 0 where data decide the extent", mode);
    x = padded(c, x, d, pads.low[d], pads.high[d], mode);
    pads.low[d] = pads.high[d] = 0;
  }
  std::vector<int64_t> all = pads.low;
  all.insert(all.end(), pads.high.begin(), pads.high.end());
  const ValueId y = c.add("Pad", {x, c.integers(all), value}, {{"mode", mode}});
  c.result(0, with_extents(c, y, join_extents(c, shape)));
  return ok_status();
}

namespace {

// Returns x, which has no extents, with `wanted` elements in dimension d of operand 0, of which
// data decide the extent: those in the middle, or all of them with zeros around.
ValueId centred(ExpandContext& c, ValueId x, size_t d, int64_t wanted) {
  const auto dim = static_cast<int64_t>(d);
  const ValueId extent = c.reshape(dimension(c, c.extents_of(c.input(0)), dim), {});
  const auto number = static_cast<double>(wanted);
  // Rounded towards 0 as the definition has it: the odd element is at the end.
  const ValueId before = c.binary("Div", c.binary("Sub", extent, number), 2.0);
  const ValueId places = c.binary("Add", numbers_from_0(c, wanted), before);
  const ValueId inside =
      c.binary("And", c.binary("GreaterOrEqual", places, 0.0), c.binary("Less", places, extent));
  const ValueId last = c.scalar(DType::kI64, static_cast<double>(c.shape_of(x)[d] - 1));
  const ValueId safe = c.binary("Max", c.binary("Min", places, last), 0.0);
  Shape along(c.shape_of(x).size(), 1);
  along[d] = wanted;
  return c.add("Where",
               {c.reshape(inside, along), at_places(c, x, safe, d), c.scalar(c.dtype_of(x), 0)});
}

}  // namespace

Status propagate_center_crop_pad(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> wanted, c.integers(1, "the shape"));
  HONE_ASSIGN_OR_RETURN(const std::vector<size_t> dims, named_dims(c));
  if (wanted.size() != dims.size() || num_elements(c.shape(0)) == 0)
    return c.fail("shape {} for {} axes", to_string(wanted), dims.size());
  std::vector<ExtentPart> shape = parts(c, c.input(0), 0, c.shape(0).size());
  ValueId x = without_extents(c, c.input(0));
  std::vector<int64_t> axes, others;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (wanted[i] < 0) return c.fail("shape {}", to_string(wanted));
    shape[dims[i]] = {kNoValue, wanted[i]};
    if (is_decided(c, 0, dims[i])) {
      x = centred(c, x, dims[i], wanted[i]);
    } else {
      axes.push_back(static_cast<int64_t>(dims[i]));
      others.push_back(wanted[i]);
    }
  }
  if (!axes.empty()) x = c.add("CenterCropPad", {x, c.integers(others)}, {{"axes", axes}});
  c.result(0, with_extents(c, x, join_extents(c, shape)));
  return ok_status();
}

Status propagate_tile(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> repeats, c.integers(1, "repeats"));
  const Shape most = c.shape(0);
  if (repeats.size() != most.size())
    return c.fail("{} repeats for data of rank {}", repeats.size(), most.size());
  ValueId x = without_extents(c, c.input(0));
  std::vector<ExtentPart> shape;
  for (size_t d = 0; d < most.size(); ++d) {
    int64_t all = 0;
    if (repeats[d] < 0 || __builtin_mul_overflow(most[d], repeats[d], &all))
      return c.fail("repeats are {}", to_string(repeats));
    if (!is_decided(c, 0, d)) {
      shape.push_back({kNoValue, all});
      continue;
    }
    const ValueId extent = dimension(c, c.extents_of(c.input(0)), static_cast<int64_t>(d));
    shape.push_back({c.binary("Mul", extent, static_cast<double>(repeats[d])), 0});
    if (repeats[d] == 1) continue;
    if (c.node().made_for != nullptr) return c.unsupported("{}", kMadeForOneShape);
    const ValueId places = c.binary("Mod", numbers_from_0(c, all), divisor_of(c, d));
    x = at_places(c, x, places, d);
    repeats[d] = 1;
  }
  const ValueId y = c.add("Tile", {x, c.integers(repeats)});
  c.result(0, with_extents(c, y, join_extents(c, shape)));
  return ok_status();
}

Status propagate_gather_elements(ExpandContext& c) {
  const ValueId data = c.input(0), indices = c.input(1);
  HONE_ASSIGN_OR_RETURN(const size_t axis, axis_of(c, 0, c.shape(0).size()));
  ValueId places = safe_indices(c, indices);
  if (is_decided(c, 0, axis)) {  // negative indices count from the end that a run has
    const ValueId extent = dimension(c, c.extents_of(data), static_cast<int64_t>(axis));
    places = indices_from_begin(c, places, c.reshape(extent, {}));
  }
  const ValueId y = c.add("GatherElements", {without_extents(c, data), places},
                          {{"axis", static_cast<int64_t>(axis)}});
  c.result(0, varies(c, 1) ? with_extents(c, y, c.extents_of(indices)) : y);
  return ok_status();
}

}  // namespace hone::graph
