// Rules for shapes that vary, of operators that read windows: convolutions, with the results of
// transposed ones, and pooling.
#include <algorithm>
#include <limits>

#include "hone/graph/ops/window.h"
#include "hone/graph/size_windows.h"

namespace hone::graph {
namespace {

// Returns whether windows begin where they begin at the largest size: the padding before the first
// element is the same. That behind the last one is what lies beyond the elements of a run.
bool begin_alike(const SizeRule& rule) {
  if (rule.node.op->padding == nullptr) return true;
  const Shape low = rule.node.op->padding(rule.sizes.graph(), rule.node).low;
  const auto& probes = rule.sizes.probes();
  return std::all_of(probes.begin(), probes.end(), [&](const SizeProbe& probe) {
    const Node* twin = probe.producer_of_twin(rule.sizes.origin(rule.node.outputs[0]));
    return twin == nullptr || twin->op->padding(probe.graph, *twin).low == low;
  });
}

// The padding of a side of this extent.
std::pair<ValueId, ValueId> padding_of(SizeRule& rule, const Window& window, size_t d,
                                       ValueId extent) {
  ExpandContext& c = rule.c;
  const std::string mode = rule.node.attributes.text("auto_pad", "NOTSET");
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") {
    return {c.scalar(DType::kI64, static_cast<double>(window.pad_low[d])),
            c.scalar(DType::kI64, static_cast<double>(window.pad_high[d]))};
  }
  const auto stride = static_cast<double>(window.stride[d]);
  const auto reach = static_cast<double>((window.kernel[d] - 1) * window.dilation[d] + 1);
  // As many windows as there are strides: the last one begins at a multiple of the stride.
  const ValueId windows = c.binary("Div", c.binary("Add", extent, stride - 1), stride);
  const ValueId last = c.binary("Mul", c.binary("Add", windows, -1.0), stride);
  const ValueId missing = c.binary("Sub", c.binary("Add", last, reach), extent);
  const ValueId total = c.binary("Max", missing, 0.0);
  const ValueId more = mode == "SAME_LOWER" ? c.binary("Add", total, 1.0) : total;
  const ValueId low = c.binary("Div", more, 2.0);
  return {low, c.binary("Sub", total, low)};
}

// Data with its padding as elements, so that windows need no padding, and for each side which
// elements count: those of the run, or its padding as well.
struct LaidOut {
  ValueId data = kNoValue;
  std::vector<ValueId> counted;
};

// Where a run has no elements, they are `fill`. The node gets no padding.
LaidOut lay_out(SizeRule& rule, double fill, bool counts_padding) {
  ExpandContext& c = rule.c;
  const Window window = window_of(rule.sizes.graph(), rule.node);
  LaidOut laid{rule.node.inputs[0], {}};
  const ShapeParts parts = rule.sizes.parts_of(laid.data);
  const Shape shape = c.shape_of(laid.data);
  for (size_t d = 0; d < window.rank(); ++d) {
    const size_t dim = kFirstSide + d;
    const int64_t count =
        (window.output[d] - 1) * window.stride[d] + (window.kernel[d] - 1) * window.dilation[d] + 1;
    const ValueId extent = rule.sizes.extent_of(c, parts[dim]);
    const auto [low, high] = padding_of(rule, window, d, extent);
    const ValueId from = c.binary("Sub", numbers_from_0(c, count), low);
    const ValueId inside = are_inside(c, from, extent);
    const auto last = static_cast<double>(shape[dim] - 1);
    laid.data = c.add("Gather", {laid.data, c.binary("Max", c.binary("Min", from, last), 0.0)},
                      {{"axis", static_cast<int64_t>(dim)}});
    laid.data = c.add("Where", {along(c, inside, dim, shape.size()), laid.data,
                                c.scalar(c.dtype_of(laid.data), fill)});
    laid.counted.push_back(counts_padding ? c.binary("Less", from, c.binary("Add", extent, high))
                                          : inside);
  }
  rule.node.attributes.set("auto_pad", std::string("NOTSET"));
  rule.node.attributes.set("pads", Shape(2 * window.rank(), 0));
  if (rule.node.attributes.has("ceil_mode")) rule.node.attributes.set("ceil_mode", int64_t{0});
  return laid;
}

// The side of a result: as many windows as begin within the data, its padding, or what a last
// window reaches beyond them.
std::optional<SizePart> part_of_side(SizeRule& rule, ValueId out, size_t d) {
  const Window window = window_of(rule.sizes.graph(), rule.node);
  const size_t k = d - kFirstSide;
  const int64_t stride = window.stride[k], reach = (window.kernel[k] - 1) * window.dilation[k] + 1;
  const int64_t whole = window.pad_low[k] + window.pad_high[k] - reach + stride;
  return rule.sizes.divided_part(out, d, rule.sizes.parts_of(rule.node.inputs[0])[d],
                                 {whole, whole + stride - 1, stride - 1}, stride);
}

}  // namespace

std::vector<size_t> sides_of(const SizeRule& rule) {
  std::vector<size_t> sides;
  for (size_t d = kFirstSide; d < rule.c.shape_of(rule.node.inputs[0]).size(); ++d)
    sides.push_back(d);
  return sides;
}

bool sides_vary(const SizeRule& rule) {
  const std::vector<size_t> sides = sides_of(rule);
  return std::any_of(sides.begin(), sides.end(),
                     [&](size_t d) { return rule.sizes.varies(rule.node.inputs[0], d); });
}

Status set_window_parts(SizeRule& rule) {
  ValueId& x = rule.node.inputs[0];
  // Without weights channels are apart, as images are.
  const size_t apart = rule.node.inputs.size() == 1 ? kFirstSide : 1;
  for (size_t i = 0; i < rule.node.inputs.size(); ++i) {
    for (size_t d = 0; rule.node.has_input(i) && d < rule.c.shape_of(rule.node.inputs[i]).size();
         ++d) {
      const bool may = i == 0 && (d != 1 || apart > 1);
      if (rule.sizes.varies(rule.node.inputs[i], d) && !may)
        return rule.c.unsupported(
            "dimension {} of operand {} varies from run to run: give one size for it (--shape)", d,
            i);
    }
  }
  for (const ValueId out : rule.node.outputs) {
    if (out == kNoValue) continue;
    ShapeParts parts = rule.sizes.parts_of(out);
    for (size_t d = 0; d < parts.size(); ++d) {
      if (d < apart) parts[d] = rule.sizes.parts_of(x)[d];
      if (d < kFirstSide || !sides_vary(rule)) continue;
      HONE_RETURN_IF_ERROR(make_contiguous(rule, x, d));
      if (const auto seen = part_of_side(rule, out, d)) {
        parts[d] = {*seen};
      } else {
        HONE_ASSIGN_OR_RETURN(const SizePart part, part_of(rule, out, d));
        parts[d] = {part};
      }
    }
    rule.sizes.set_parts(out, std::move(parts));
  }
  return ok_status();
}

namespace {

Status follow_conv(SizeRule& rule) {
  HONE_RETURN_IF_ERROR(set_window_parts(rule));
  if (!sides_vary(rule)) return ok_status();
  if (!begin_alike(rule)) {
    rule.node.inputs[0] = lay_out(rule, 0, false).data;
    return ok_status();
  }
  const Shape weights = rule.c.shape_of(rule.node.inputs[1]);
  const bool points = std::all_of(weights.begin() + kFirstSide, weights.end(),
                                  [](int64_t extent) { return extent == 1; });
  // What a window of one element reads is there.
  if (!points || rule.node.op->padding(rule.sizes.graph(), rule.node).any())
    rule.node.inputs[0] = rule.sizes.filled(rule.c, rule.node.inputs[0], sides_of(rule), 0);
  return ok_status();
}

Status follow_max_pool(SizeRule& rule) {
  HONE_RETURN_IF_ERROR(set_window_parts(rule));
  if (!sides_vary(rule)) return ok_status();
  const ValueId x = rule.node.inputs[0];
  constexpr double kLeast = -std::numeric_limits<double>::infinity();
  rule.node.inputs[0] = begin_alike(rule) ? rule.sizes.filled(rule.c, x, sides_of(rule), kLeast)
                                          : lay_out(rule, kLeast, false).data;
  return ok_status();
}

// The mean of the elements of each window that count.
void build_means(SizeRule& rule, ValueId data, ValueId counted) {
  Node pool = rule.node;
  pool.name.clear();
  pool.attributes.set("count_include_pad", int64_t{1});
  const ValueId out = rule.node.outputs[0];
  const ShapeParts parts = rule.sizes.parts_of(out);
  const ValueId sum = rule.c.add_like(pool, {data});
  rule.c.result(0, rule.c.binary("Div", sum, rule.c.add_like(pool, {counted})));
  rule.sizes.set_parts(out, parts);
  rule.replaced = true;
}

// Windows of data with its padding as elements.
void build_laid_out_means(SizeRule& rule, bool counts_padding) {
  ExpandContext& c = rule.c;
  const LaidOut laid = lay_out(rule, 0, counts_padding);
  const size_t rank = laid.counted.size();
  ValueId counted = kNoValue;
  Shape shape = {1, 1};
  for (size_t d = 0; d < rank; ++d) {
    Shape along(rank - d, 1);
    along[0] = c.shape_of(laid.counted[d])[0];
    shape.push_back(along[0]);
    const ValueId own = c.reshape(laid.counted[d], along);
    counted = counted == kNoValue ? own : c.binary("And", counted, own);
  }
  build_means(rule, laid.data, c.reshape(c.cast(counted, c.dtype_of(laid.data)), shape));
}

// Where padding does not count, the sum of a window is divided by the number of its elements: both
// are averages in which padding and what is not there count as 0.
Status follow_average_pool(SizeRule& rule) {
  HONE_RETURN_IF_ERROR(set_window_parts(rule));
  if (!sides_vary(rule)) return ok_status();
  const bool counts_padding = rule.node.attributes.integer("count_include_pad", 0) != 0;
  const bool goes_beyond = rule.node.attributes.integer("ceil_mode", 0) != 0;
  ExpandContext& c = rule.c;
  const ValueId x = rule.node.inputs[0];
  if (!begin_alike(rule) || (goes_beyond && counts_padding)) {
    build_laid_out_means(rule, counts_padding);
    return ok_status();
  }
  const bool pads = rule.node.op->padding(rule.sizes.graph(), rule.node).any();
  if (!pads && !goes_beyond) return ok_status();
  const ValueId given = rule.sizes.filled(c, x, sides_of(rule), 0);
  if (counts_padding) {
    rule.node.inputs[0] = given;
    return ok_status();
  }
  const Shape shape = c.shape_of(x);
  Shape one = shape;
  one[0] = one[1] = 1;
  const ValueId there = uniform(c, c.dtype_of(x), one, 1);
  ShapeParts parts = rule.sizes.parts_of(x);
  for (size_t d = 0; d < kFirstSide; ++d) parts[d] = {{kNoForm, 1}};
  rule.sizes.set_parts(there, std::move(parts));
  build_means(rule, given, rule.sizes.filled(c, there, sides_of(rule), 0));
  return ok_status();
}

Status follow_global_max_pool(SizeRule& rule) {
  ShapeParts parts = rule.sizes.parts_of(rule.node.outputs[0]);
  const ShapeParts from = rule.sizes.parts_of(rule.node.inputs[0]);
  for (size_t d = 0; d < kFirstSide; ++d) parts[d] = from[d];
  if (sides_vary(rule)) {
    rule.c.result(0, reduce_run(rule, "ReduceMax", rule.node.inputs[0], sides_of(rule), true));
    rule.replaced = true;
  }
  rule.sizes.set_parts(rule.node.outputs[0], std::move(parts));
  return ok_status();
}

Status follow_global_average_pool(SizeRule& rule) {
  const ValueId out = rule.node.outputs[0];
  ShapeParts parts = rule.sizes.parts_of(out);
  const ShapeParts from = rule.sizes.parts_of(rule.node.inputs[0]);
  for (size_t d = 0; d < kFirstSide; ++d) parts[d] = from[d];
  if (sides_vary(rule)) build_mean(rule, rule.node.inputs[0], sides_of(rule), true);
  rule.sizes.set_parts(out, std::move(parts));
  return ok_status();
}

// Element i of a side is element i / repeats of the operand's.
Status follow_repeat(SizeRule& rule) {
  ValueId& x = rule.node.inputs[0];
  const ValueId out = rule.node.outputs[0];
  ShapeParts parts = rule.sizes.parts_of(x);
  for (size_t d = 0; d < parts.size(); ++d) {
    if (rule.c.shape_of(out)[d] == rule.c.shape_of(x)[d]) continue;
    HONE_RETURN_IF_ERROR(make_contiguous(rule, x, d));
    HONE_ASSIGN_OR_RETURN(const SizePart seen, part_of(rule, out, d));
    parts[d] = {seen};
  }
  rule.sizes.set_parts(out, std::move(parts));
  return ok_status();
}

// Element i of a side is element i / steps of one of the operands, which are the phases of a
// transposed convolution.
Status follow_interleave(SizeRule& rule) {
  const ValueId out = rule.node.outputs[0];
  ShapeParts parts = rule.sizes.parts_of(out);
  for (size_t d = 0; d < parts.size(); ++d) {
    std::vector<SharedDim> shared;
    bool varies = false;
    for (ValueId& in : rule.node.inputs) {
      shared.push_back({&in, d});
      varies = varies || rule.sizes.varies(in, d);
    }
    if (!varies) continue;
    if (d < kFirstSide) {
      parts[d].clear();
      HONE_RETURN_IF_ERROR(share_parts(rule, shared, parts[d]));
      continue;
    }
    for (ValueId& in : rule.node.inputs) HONE_RETURN_IF_ERROR(make_contiguous(rule, in, d));
    HONE_ASSIGN_OR_RETURN(const SizePart seen, part_of(rule, out, d));
    parts[d] = {seen};
  }
  rule.sizes.set_parts(out, std::move(parts));
  return ok_status();
}

constexpr SizeRuleOf kRules[] = {
    {"Conv", follow_conv},
    {"hone.ConvInteger", follow_conv},
    {"MaxPool", follow_max_pool},
    {"AveragePool", follow_average_pool},
    {"GlobalAveragePool", follow_global_average_pool},
    {"GlobalMaxPool", follow_global_max_pool},
    {"hone.Repeat", follow_repeat},
    {"hone.Interleave", follow_interleave},
};

}  // namespace

std::span<const SizeRuleOf> size_rules_of_windows() { return kRules; }

}  // namespace hone::graph
