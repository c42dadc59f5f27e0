// Resize and Upsample with scales or sizes known at compile time: one axis after the other, each a
// slice or a repetition where it is one, else weighted sums by tables, of two axes together.
#include "hone/graph/ops/resize.h"

#include <algorithm>
#include <cmath>

#include "hone/graph/expand.h"
#include "hone/graph/ops/axis_samples.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

Result<std::vector<double>> numbers(const InferContext& c, size_t i, const char* what) {
  HONE_ASSIGN_OR_RETURN(const Tensor* tensor, c.required(i, what));
  std::vector<double> list;
  for (int64_t k = 0; k < tensor->size(); ++k) list.push_back(tensor->at(k));
  return list;
}

bool given(const InferContext& c, size_t i) { return c.has(i) && c.shape(i) != Shape{0}; }

ResizeMode mode_of(const InferContext& c) {
  const Attributes& a = c.attributes();
  ResizeMode mode;
  mode.mode = a.text("mode", "nearest");
  if (c.opset() < 11) {  // Upsample, and the first Resize
    mode.coordinates = "asymmetric";
    mode.rounding = "floor";
    if (mode.mode == "bilinear" || mode.mode == "trilinear") mode.mode = "linear";
  }
  mode.coordinates = a.text("coordinate_transformation_mode", mode.coordinates);
  mode.rounding = a.text("nearest_mode", mode.rounding);
  mode.cubic_a = static_cast<double>(a.number("cubic_coeff_a", -0.75F));
  mode.exclude_outside = a.integer("exclude_outside", 0) != 0;
  mode.antialias = a.integer("antialias", 0) != 0 && mode.mode != "nearest";
  return mode;
}

// Extents from `sizes`, as they are or as the largest or smallest that keep the proportions.
Status apply_sizes(const InferContext& c, const std::vector<size_t>& dims,
                   const std::vector<double>& sizes, ResizeGeometry& g) {
  const std::string policy = c.attributes().text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    return c.fail("keep_aspect_ratio_policy '{}'", policy);
  double common = policy == "not_larger" ? HUGE_VAL : 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    ResizeAxis& axis = g.axes[dims[i]];
    axis.output = static_cast<int64_t>(sizes[i]);
    axis.scale = sizes[i] / static_cast<double>(axis.input);
    common = policy == "not_larger" ? std::min(common, axis.scale) : std::max(common, axis.scale);
  }
  for (const size_t d : dims) {
    if (policy == "stretch") continue;
    g.axes[d].scale = common;
    g.axes[d].output = static_cast<int64_t>(common * static_cast<double>(g.axes[d].input) + 0.5);
  }
  return ok_status();
}

}  // namespace

Result<ResizeGeometry> resize_geometry(const InferContext& c) {
  ResizeGeometry g;
  g.mode = mode_of(c);
  if (const Status names = g.mode.check(); !names.ok()) return c.fail("{}", names.message());
  g.extrapolation = static_cast<double>(c.attributes().number("extrapolation_value", 0));
  std::vector<size_t> dims;
  for (size_t d = 0; d < c.shape(0).size(); ++d) {
    g.axes.push_back({.input = c.shape(0)[d], .output = c.shape(0)[d]});
    if (!c.attributes().has("axes")) dims.push_back(d);
  }
  for (const int64_t named : c.attributes().integers("axes")) {
    const auto axis = normalize_axis(named, c.rank(0));
    if (!axis) return c.fail("axis {} of a value of shape {}", named, to_string(c.shape(0)));
    dims.push_back(static_cast<size_t>(*axis));
  }
  const bool old = c.opset() < 11;
  const size_t scales_at = old ? 1 : 2;
  const auto* attribute = c.attributes().find<std::vector<float>>("scales");  // before opset 9
  if (attribute == nullptr && given(c, scales_at) == (!old && given(c, 3)))
    return c.fail("expected either scales or sizes");
  std::vector<double> list;
  const bool by_sizes = !old && given(c, 3);
  if (by_sizes) {
    HONE_ASSIGN_OR_RETURN(list, numbers(c, 3, "the sizes"));
  } else if (attribute != nullptr) {
    list.assign(attribute->begin(), attribute->end());
  } else {
    HONE_ASSIGN_OR_RETURN(list, numbers(c, scales_at, "the scales"));
  }
  for (const double x : list) {
    if (!(x > 0 && x < 1 << 24)) return c.fail("a scale or size of {}", x);
  }
  if (list.size() != dims.size())
    return c.fail("{} scales or sizes for {} axes", list.size(), dims.size());
  if (by_sizes) HONE_RETURN_IF_ERROR(apply_sizes(c, dims, list, g));
  for (size_t i = 0; !by_sizes && i < dims.size(); ++i) {
    ResizeAxis& axis = g.axes[dims[i]];
    axis.scale = list[i];
    axis.output = static_cast<int64_t>(
        std::floor(static_cast<float>(axis.input) * static_cast<float>(list[i])));
  }
  if (g.mode.coordinates == "tf_crop_and_resize") {
    if (!given(c, 1)) return c.fail("the region of tf_crop_and_resize is missing");
    HONE_ASSIGN_OR_RETURN(const std::vector<double> roi, numbers(c, 1, "the region"));
    if (roi.size() != 2 * dims.size()) return c.fail("a region of {} numbers", roi.size());
    for (size_t i = 0; i < dims.size(); ++i) {
      g.axes[dims[i]].roi_start = roi[i];
      g.axes[dims[i]].roi_end = roi[dims.size() + i];
    }
  }
  return g;
}

namespace {

bool unchanged(const ResizeAxis& a) {
  return a.input == a.output && a.scale == 1 && a.roi_start == 0 && a.roi_end == 1;
}

Tensor index_table(const Taps& taps, int64_t output) {
  Tensor table(DType::kI32, {output, taps.count});
  for (int64_t i = 0; i < table.size(); ++i)
    table.set(i, static_cast<double>(taps.index[static_cast<size_t>(i)]));
  return table;
}

Tensor weight_table(const Taps& taps, int64_t output, double extrapolation, DType dtype) {
  Tensor table(dtype, {output, taps.count + 1});
  for (int64_t o = 0; o < output; ++o) {
    const bool outside = taps.outside[static_cast<size_t>(o)];
    for (int64_t k = 0; k < taps.count && !outside; ++k)
      table.set(o * (taps.count + 1) + k, taps.weight[static_cast<size_t>(o * taps.count + k)]);
    if (outside) table.set(o * (taps.count + 1) + taps.count, extrapolation);
  }
  return table;
}

// The elements by[0] of an axis, one for each of the result: a slice, a repetition, or by table.
ValueId pick(ExpandContext& c, ValueId x, size_t axis, const Taps& taps, Shape& repeats) {
  const int64_t n = c.shape_of(x)[axis], out = static_cast<int64_t>(taps.index.size());
  const int64_t step = out > 1 ? taps.index[1] - taps.index[0] : 1;
  bool even = step > 0, repeats_all = out % n == 0;
  for (int64_t o = 0; o < out; ++o) {
    even = even && taps.index[static_cast<size_t>(o)] == taps.index[0] + o * step;
    repeats_all = repeats_all && taps.index[static_cast<size_t>(o)] == o / (out / n);
  }
  if (repeats_all) {
    repeats[axis] = out / n;
    return x;
  }
  const auto a = static_cast<int64_t>(axis);
  if (even) return c.slice(x, a, taps.index[0], taps.index.back() + 1, step);
  return c.add("hone.Resample", {x, c.constant(index_table(taps, out))}, {{"axis", a}});
}

// The nearest number that an integer type has; cubic weights may leave its range.
ValueId rounded(ExpandContext& c, ValueId x, DType type) {
  const bool is_signed =
      type == DType::kI8 || type == DType::kI16 || type == DType::kI32 || type == DType::kI64;
  const double bits = 8.0 * static_cast<double>(dtype_bytes(type)) - (is_signed ? 1 : 0);
  const double high = std::min(std::exp2(bits) - 1, 9.2e18);
  const ValueId whole = c.add("Round", {x});
  return c.binary("Max", c.binary("Min", whole, high), is_signed ? -high - 1 : 0);
}

Status expand_resize(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const ResizeGeometry g, resize_geometry(c));
  std::vector<std::pair<size_t, Taps>> steps;
  bool weighted = false;
  for (size_t d = 0; d < g.axes.size(); ++d) {
    if (unchanged(g.axes[d])) continue;
    if (g.axes[d].input == 0) return c.fail("data of shape {}", to_string(c.shape(0)));
    Result<Taps> taps = make_taps(g.mode, g.axes[d]);
    if (!taps.ok()) return c.fail("{}", taps.status().message());
    steps.push_back({d, std::move(taps).value()});
    const std::vector<bool>& outside = steps.back().second.outside;
    weighted = weighted || g.mode.mode != "nearest" ||
               std::count(outside.begin(), outside.end(), true) > 0;
  }
  // The axes that shrink first: less is left to do.
  std::stable_sort(steps.begin(), steps.end(), [&](const auto& a, const auto& b) {
    return g.axes[a.first].scale < g.axes[b.first].scale;
  });
  const DType type = c.dtype(0);
  const bool wide = type == DType::kF64 || type == DType::kI64 || type == DType::kI32 ||
                    type == DType::kU64 || type == DType::kU32;
  const DType work = wide ? DType::kF64 : DType::kF32;
  ValueId x = weighted ? c.cast(c.input(0), work) : c.input(0);
  Shape repeats(c.shape(0).size(), 1);
  const auto tables = [&](const auto& step, std::vector<ValueId>& operands) {
    const int64_t out = g.axes[step.first].output;
    operands.push_back(c.constant(index_table(step.second, out)));
    operands.push_back(weighted ? c.constant(weight_table(step.second, out, g.extrapolation, work))
                                : kNoValue);
  };
  // Returns whether the operator for two axes is better at a step.
  const auto for_plane = [&](const std::pair<size_t, Taps>& step) {
    const ResizeAxis& axis = g.axes[step.first];
    return weighted ? step.second.count <= AxisSamples::kFewTaps
                    : axis.output > axis.input && dtype_bytes(compute_type(type)) >= 4;
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto& [axis, taps] = steps[i];
    const auto here = static_cast<int64_t>(axis);
    const bool plane = i + 2 == steps.size() && for_plane(steps[i]) && for_plane(steps[i + 1]);
    if (!plane && !weighted) {
      x = pick(c, x, axis, taps, repeats);
      continue;
    }
    std::vector<ValueId> operands = {x};
    tables(steps[i], operands);
    if (!plane) {
      x = c.add("hone.Resample", std::move(operands), {{"axis", here}});
      continue;
    }
    tables(steps[++i], operands);
    const auto other = static_cast<int64_t>(steps[i].first);
    x = c.add("hone.ResamplePlane", std::move(operands), {{"axes", Shape{here, other}}});
  }
  if (std::any_of(repeats.begin(), repeats.end(), [](int64_t r) { return r > 1; }))
    x = c.add("hone.Repeat", {x}, {{"repeats", repeats}});
  if (weighted && !is_float(type)) x = rounded(c, x, type);
  c.result(0, c.cast(x, type));
  return ok_status();
}

// hone.ResizeSides stands for a node of which factors or extents differ from run to run
// (graph/widen_nodes.h).
Status infer_resize_sides(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const ResizeGeometry g, resize_geometry(c));
  Shape shape;
  for (const ResizeAxis& axis : g.axes) shape.push_back(axis.output);
  return c.set(0, c.dtype(0), std::move(shape));
}

Op resize(std::string_view name, int since, int until, int min_inputs, int max_inputs,
          std::string_view attributes) {
  return {.name = name,
          .since = since,
          .until = until,
          .min_inputs = min_inputs,
          .max_inputs = max_inputs,
          .attributes = attributes,
          .expand = expand_resize};
}

}  // namespace

std::span<const Op> resize_ops() {
  static const Op ops[] = {
      resize("Upsample", 7, 8, 1, 1, "mode:s scales:fs"),
      resize("Upsample", 9, 10, 2, 2, "mode:s"),
      resize("Resize", 10, 10, 2, 2, "mode:s"),
      resize("Resize", 11, 17, 1, 4,
             "coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i "
             "extrapolation_value:f mode:s nearest_mode:s"),
      resize("Resize", 18, kMaxOpset, 1, 4,
             "antialias:i axes:is coordinate_transformation_mode:s cubic_coeff_a:f "
             "exclude_outside:i extrapolation_value:f keep_aspect_ratio_policy:s mode:s "
             "nearest_mode:s"),
      {.name = "hone.ResizeSides",
       .max_inputs = 4,
       .attributes = "antialias:i axes:is coordinate_transformation_mode:s cubic_coeff_a:f "
                     "exclude_outside:i extrapolation_value:f keep_aspect_ratio_policy:s mode:s "
                     "nearest_mode:s scales:fs",
       .infer = infer_resize_sides},
  };
  return ops;
}

}  // namespace hone::graph
