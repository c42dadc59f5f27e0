// The rule for shapes that vary of hone.ResizeSides: a Resize of which factors or extents differ
// from run to run, so its tables are computed in each run.
#include <algorithm>
#include <cmath>

#include "hone/graph/ops/resize.h"
#include "hone/graph/size_follower.h"

namespace hone::graph {
namespace {

// Numbers of one axis in a run, as f64 scalars; `scale` is the factor, and `whole` the extent times
// the factor, which is not rounded.
struct RunAxis {
  size_t dim = 0;
  int64_t most = 1;  // of the result's elements
  ValueId extent = kNoValue, result = kNoValue, scale = kNoValue, whole = kNoValue;
};

// The elements of which each element of the result is a sum: their places [most, taps], and their
// weights; kNoValue if there is one of weight 1.
struct RunTaps {
  ValueId places = kNoValue, weights = kNoValue;
};

ValueId either(ExpandContext& c, ValueId condition, ValueId yes, ValueId no) {
  return c.add("Where", {condition, yes, no});
}

// The place in the data, a real number, of each element of the result: resize_taps.cc says the
// same of numbers.
ValueId sources(ExpandContext& c, const ResizeMode& mode, const RunAxis& axis) {
  const ValueId x = numbers_from_0(c, DType::kF64, {axis.most});
  const ValueId zero = c.scalar(DType::kF64, 0), one = c.scalar(DType::kF64, 1);
  const auto middle = [&] { return c.binary("Div", c.binary("Add", x, 0.5), axis.scale); };
  const ValueId is_one = c.binary("Equal", axis.whole, one);
  if (mode.coordinates == "align_corners") {
    const ValueId steps = either(c, is_one, one, c.binary("Add", axis.whole, -1.0));
    const ValueId ends = either(c, is_one, zero, c.binary("Add", axis.extent, -1.0));
    return c.binary("Div", c.binary("Mul", x, ends), steps);
  }
  if (mode.coordinates == "asymmetric") return c.binary("Div", x, axis.scale);
  if (mode.coordinates == "tf_half_pixel_for_nn") return middle();
  const ValueId half_pixel = c.binary("Add", middle(), -0.5);
  if (mode.coordinates == "pytorch_half_pixel") return either(c, is_one, zero, half_pixel);
  if (mode.coordinates == "half_pixel_symmetric") {
    const ValueId missing = c.binary("Sub", one, c.binary("Div", axis.result, axis.whole));
    return c.binary("Add", half_pixel, c.binary("Mul", missing, c.binary("Mul", axis.extent, 0.5)));
  }
  return half_pixel;
}

ValueId nearest(ExpandContext& c, const std::string& rounding, ValueId x) {
  if (rounding == "floor") return c.add("Floor", {x});
  if (rounding == "ceil") return c.add("Ceil", {x});
  if (rounding == "round_prefer_ceil") return c.add("Floor", {c.binary("Add", x, 0.5)});
  return c.add("Ceil", {c.binary("Add", x, -0.5)});
}

ValueId inside(ExpandContext& c, const RunAxis& axis, ValueId at, DType type) {
  const ValueId last = c.binary("Add", axis.extent, -1.0);
  return c.cast(c.binary("Max", c.binary("Min", at, last), 0.0), type);
}

ValueId cubic(ExpandContext& c, double a, ValueId distance) {
  const auto sum = [&](ValueId x, double by) { return c.binary("Add", x, by); };
  const auto product = [&](ValueId x, ValueId y) { return c.binary("Mul", x, y); };
  const ValueId x = c.add("Abs", {distance});
  const ValueId square = product(x, x);
  const ValueId near = sum(product(sum(c.binary("Mul", x, a + 2), -(a + 3)), square), 1);
  const ValueId inner = sum(product(sum(c.binary("Mul", x, a), -5 * a), x), 8 * a);
  const ValueId far = sum(product(inner, x), -4 * a);
  const ValueId zero = c.scalar(DType::kF64, 0);
  const ValueId beyond = either(c, c.binary("Less", x, c.scalar(DType::kF64, 2)), far, zero);
  return either(c, c.binary("Less", c.scalar(DType::kF64, 1), x), beyond, near);
}

RunTaps weighted_taps(ExpandContext& c, const ResizeMode& mode, const RunAxis& axis, ValueId x) {
  const bool is_cubic = mode.mode == "cubic";
  const int64_t first = is_cubic ? -1 : 0, count = is_cubic ? 4 : 2;
  Tensor offsets(DType::kF64, {1, count});
  for (int64_t k = 0; k < count; ++k) offsets.set(k, static_cast<double>(first + k));
  x = c.reshape(x, {axis.most, 1});
  const ValueId base = c.binary("Add", c.add("Ceil", {x}), -1.0);  // left of x, also at an element
  const ValueId at = c.binary("Add", base, c.constant(std::move(offsets)));
  const ValueId distance = c.binary("Sub", at, x);
  const ValueId zero = c.scalar(DType::kF64, 0);
  ValueId weights =
      is_cubic ? cubic(c, mode.cubic_a, distance)
               : c.binary("Max",
                          c.binary("Sub", c.scalar(DType::kF64, 1), c.add("Abs", {distance})), 0.0);
  if (mode.exclude_outside) {
    const ValueId is_there = c.binary("And", c.binary("Less", c.scalar(DType::kF64, -0.5), at),
                                      c.binary("Less", at, axis.extent));
    weights = either(c, is_there, weights, zero);
  }
  weights = c.binary("Div", weights, c.reduce("ReduceSum", weights, {1}));
  weights = c.add("Concat", {weights, uniform(c, DType::kF64, {axis.most, 1}, 0)},
                  {{"axis", int64_t{1}}});
  return {inside(c, axis, at, DType::kI32), c.cast(weights, DType::kF32)};
}

// A resize at a size at which the model was looked at.
struct SizedResize {
  const SizeProbe* probe;
  ResizeGeometry geometry;
};

Result<std::vector<SizedResize>> resizes_at_probes(SizeRule& rule) {
  std::vector<SizedResize> all;
  for (const SizeProbe& probe : rule.sizes.probes()) {
    const Node* twin = probe.producer_of_twin(rule.sizes.origin(rule.node.outputs[0]));
    if (twin == nullptr) continue;
    HONE_ASSIGN_OR_RETURN(ResizeGeometry geometry,
                          resize_geometry(InferContext(const_cast<Graph&>(probe.graph), *twin)));
    all.push_back({&probe, std::move(geometry)});
  }
  return all;
}

// Returns whether the factor of an axis is the same number at all sizes; the error names a size at
// which it is neither that nor the result's extent divided by the data's.
Result<bool> is_fixed(SizeRule& rule, const ResizeGeometry& most,
                      const std::vector<SizedResize>& others, size_t d) {
  bool same = true, by_extents = true;
  std::string where;
  for (const SizedResize& other : others) {
    const ResizeAxis& axis = other.geometry.axes[d];
    const double ratio = static_cast<double>(axis.output) / static_cast<double>(axis.input);
    if (axis.scale != most.axes[d].scale) same = false;
    if (std::abs(axis.scale - ratio) > 1e-6 * ratio) {
      by_extents = false;
      where = rule.sizes.text_of(other.probe->symbols);
    }
  }
  if (same || by_extents) return same;
  return rule.c.unsupported("the factor of dimension {} follows from no extents at {}", d, where);
}

// Returns how often in a row an axis has each element of the data, if that is the same number at
// all sizes and nothing else is along the axis; 0 if not.
Result<int64_t> repeats_along(const ResizeGeometry& most, const std::vector<SizedResize>& others,
                              size_t d) {
  if (most.mode.mode != "nearest" || most.mode.coordinates == "tf_crop_and_resize") return 0;
  const int64_t repeats = most.axes[d].output / most.axes[d].input;
  const auto is_repeated = [&](const ResizeGeometry& g) -> Result<bool> {
    const ResizeAxis& axis = g.axes[d];
    if (axis.output != axis.input * repeats) return false;
    HONE_ASSIGN_OR_RETURN(const Taps taps, make_taps(g.mode, axis));
    for (int64_t o = 0; o < axis.output; ++o) {
      if (taps.index[static_cast<size_t>(o)] != o / repeats) return false;
    }
    return true;
  };
  HONE_ASSIGN_OR_RETURN(bool all, is_repeated(most));
  for (size_t i = 0; i < others.size() && all; ++i) {
    HONE_ASSIGN_OR_RETURN(all, is_repeated(others[i].geometry));
  }
  return all ? repeats : 0;
}

Status check_mode(SizeRule& rule, const ResizeGeometry& g) {
  if (g.mode.coordinates == "tf_crop_and_resize")
    return rule.c.unsupported("tf_crop_and_resize of sides that vary from run to run");
  const bool shrinks = std::any_of(g.axes.begin(), g.axes.end(),
                                   [](const ResizeAxis& axis) { return axis.scale < 1; });
  if (g.mode.antialias && shrinks)
    return rule.c.unsupported("antialias for sides that shrink and vary from run to run");
  if (g.mode.mode != "nearest" && !is_float(rule.c.dtype_of(rule.node.inputs[0])))
    return rule.c.unsupported("mode '{}' of integers whose sides vary from run to run",
                              g.mode.mode);
  return ok_status();
}

RunAxis run_axis(SizeRule& rule, const ResizeGeometry& g, const DimParts& extent,
                 const SizePart& result, size_t d, bool fixed) {
  ExpandContext& c = rule.c;
  const auto number = [&](const DimParts& parts) {
    return c.cast(rule.sizes.extent_of(c, parts), DType::kF64);
  };
  RunAxis axis{.dim = d, .most = g.axes[d].output};
  axis.extent = number(extent);
  axis.result = number({result});
  axis.scale =
      fixed ? c.scalar(DType::kF64, g.axes[d].scale) : c.binary("Div", axis.result, axis.extent);
  axis.whole = fixed ? c.binary("Mul", axis.extent, axis.scale) : axis.result;
  return axis;
}

// One axis after the other: those that shrink first.
Status follow_resize(SizeRule& rule) {
  ExpandContext& c = rule.c;
  const ValueId out = rule.node.outputs[0];
  Graph& graph = const_cast<Graph&>(rule.sizes.graph());
  HONE_ASSIGN_OR_RETURN(const ResizeGeometry g, resize_geometry(InferContext(graph, rule.node)));
  HONE_RETURN_IF_ERROR(check_mode(rule, g));
  HONE_ASSIGN_OR_RETURN(const std::vector<SizedResize> others, resizes_at_probes(rule));
  std::vector<size_t> dims;
  std::vector<bool> is_fixed_at(g.axes.size());
  ShapeParts parts = rule.sizes.parts_of(rule.node.inputs[0]);
  for (size_t d = 0; d < parts.size(); ++d) {
    const auto seen = rule.sizes.seen_part(out, d);
    const bool kept = g.axes[d].input == g.axes[d].output && g.axes[d].scale == 1;
    HONE_ASSIGN_OR_RETURN(const bool fixed, is_fixed(rule, g, others, d));
    is_fixed_at[d] = fixed;
    if (kept && fixed) continue;
    if (!seen) return part_of(rule, out, d).status();
    HONE_RETURN_IF_ERROR(make_contiguous(rule, rule.node.inputs[0], d));
    dims.push_back(d);
  }
  std::stable_sort(dims.begin(), dims.end(),
                   [&](size_t a, size_t b) { return g.axes[a].scale < g.axes[b].scale; });
  const bool weighted = g.mode.mode != "nearest";
  ValueId x = rule.node.inputs[0];
  if (weighted) x = c.cast(x, DType::kF32);
  Shape repeats(parts.size(), 1);
  for (const size_t d : dims) {
    const SizePart result = *rule.sizes.seen_part(out, d);
    HONE_ASSIGN_OR_RETURN(const int64_t times, repeats_along(g, others, d));
    if (times > 0) {
      repeats[d] = times;
      parts[d] = {result};
      continue;
    }
    const RunAxis axis =
        run_axis(rule, g, rule.sizes.parts_of(rule.node.inputs[0])[d], result, d, is_fixed_at[d]);
    const ValueId places = sources(c, g.mode, axis);
    const auto along = static_cast<int64_t>(d);
    if (weighted) {
      const RunTaps taps = weighted_taps(c, g.mode, axis, places);
      x = c.add("hone.Resample", {x, taps.places, taps.weights}, {{"axis", along}});
    } else {
      const ValueId from = inside(c, axis, nearest(c, g.mode.rounding, places), DType::kI64);
      x = rule.sizes.gathered(c, x, from, d, {result.form, parts[d]});
    }
    parts[d] = {result};
  }
  if (num_elements(repeats) > 1) x = c.add("hone.Repeat", {x}, {{"repeats", repeats}});
  c.result(0, c.cast(x, c.dtype_of(out)));
  rule.sizes.set_parts(out, std::move(parts));
  rule.replaced = true;
  return ok_status();
}

constexpr SizeRuleOf kRules[] = {{"hone.ResizeSides", follow_resize, 0b1110}};

}  // namespace

std::span<const SizeRuleOf> size_rules_of_resizes() { return kRules; }

}  // namespace hone::graph
