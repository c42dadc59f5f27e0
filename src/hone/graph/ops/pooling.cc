// MaxPool, AveragePool and their global forms.
#include <algorithm>

#include "hone/graph/emit.h"
#include "hone/graph/expand.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/window.h"

namespace hone::graph {
namespace {

using compute::Axis;
using ir::Expr;

Status infer_pool(InferContext& c) {
  if (c.dtype(0) == DType::kBool) return c.fail("data of type bool");
  const Result<Window> window = make_window(c.attributes(), c.shape(0), {});
  if (!window.ok()) return c.fail("{}", window.status().message());
  for (size_t d = 0; d < window->rank(); ++d) {
    const int64_t reach = (window->kernel[d] - 1) * window->dilation[d] + 1;
    // A window without any element has no maximum and no mean.
    if (window->pad_low[d] >= reach || window->pad_high[d] >= reach) {
      return c.fail("padding {} and {} for a window of {}", window->pad_low[d], window->pad_high[d],
                    reach);
    }
  }
  Shape shape = {c.shape(0)[0], c.shape(0)[1]};
  shape.insert(shape.end(), window->output.begin(), window->output.end());
  return c.set(0, c.dtype(0), std::move(shape));
}

constexpr int64_t kMaxMeans = 1 << 26;  // places whose windows are counted

Status infer_average_pool(InferContext& c) {
  if (!is_float(c.dtype(0))) return c.unsupported("data of type {}", dtype_name(c.dtype(0)));
  HONE_RETURN_IF_ERROR(infer_pool(c));
  const Result<Window> window = make_window(c.attributes(), c.shape(0), {});
  if (num_elements(window->output) > kMaxMeans)
    return c.unsupported("means at {} places", to_string(window->output));
  return ok_status();
}

// Where the maxima stand is wanted, too: not a reduction.
Status expand_max_pool(ExpandContext& c) {
  if (!c.wants(1)) {
    c.decline();
    return ok_status();
  }
  HONE_RETURN_IF_ERROR(infer_pool(c));
  HONE_ASSIGN_OR_RETURN(const Window window, make_window(c.attributes(), c.shape(0), {}));
  Shape pads = window.pad_low;
  pads.insert(pads.end(), window.pad_high.begin(), window.pad_high.end());
  const std::vector<ValueId> both =
      c.add_all("hone.MaxPoolIndices", {c.input(0)}, 2,
                {{"auto_pad", c.attributes().text("auto_pad", "NOTSET")},
                 {"ceil_mode", c.attributes().integer("ceil_mode", 0)},
                 {"dilations", window.dilation},
                 {"kernel_shape", window.kernel},
                 {"pads", pads},
                 {"storage_order", c.attributes().integer("storage_order", 0)},
                 {"strides", window.stride}});
  c.result(0, both[0]);
  c.result(1, both[1]);
  return ok_status();
}

Status infer_global_pool(InferContext& c) {
  if (!is_float(c.dtype(0))) return c.unsupported("data of type {}", dtype_name(c.dtype(0)));
  if (c.rank(0) < 3)
    return c.fail("data of shape {}, expected N, C and spatial dimensions", to_string(c.shape(0)));
  Shape shape = c.shape(0);
  if (std::count(shape.begin() + 2, shape.end(), 0) > 0 && shape[0] * shape[1] > 0)
    return c.fail("nothing to pool in data of shape {}", to_string(shape));
  std::fill(shape.begin() + 2, shape.end(), 1);
  return c.set(0, c.dtype(0), std::move(shape));
}

Padding pool_padding(const Graph& graph, const Node& node) {
  Padding padding =
      window_padding(window_of(graph, node), graph.value(node.inputs[0]).shape.size());
  if (node.type == "MaxPool") padding.fill = Padding::Fill::kLowest;
  return padding;
}

void emit_window(EmitContext& c, Combine combine, const StageTag& tag, const Window& window) {
  c.name_dims(window_roles(window.rank(), "c"));
  std::vector<Axis> reduce;
  const std::vector<std::string> names = spatial_names(window.rank(), "k");
  for (size_t d = 0; d < window.rank(); ++d)
    reduce.push_back(compute::make_axis(names[d], window.kernel[d]));
  c.reduce(combine, tag, std::move(reduce), [&](const Point& point, const std::vector<Expr>& r) {
    std::vector<Expr> data = {point.index[0], point.index[1]};
    for (size_t d = 0; d < window.rank(); ++d) {
      data.push_back(point.index[d + 2] * window.stride[d] + r[d] * window.dilation[d] -
                     window.pad_low[d]);
    }
    return c.read_padded("data", data);
  });
}

void emit_max_pool(EmitContext& c) {
  emit_window(c, Combine::kMax, "max_pool", window_of(c.graph(), c.node()));
}

// Returns, per position, how many elements a window has along dimension d.
std::vector<int64_t> counts(const Window& w, size_t d, bool with_padding) {
  std::vector<int64_t> result;
  const int64_t low = with_padding ? -w.pad_low[d] : 0;
  const int64_t high = w.input[d] + (with_padding ? w.pad_high[d] : 0);
  const int64_t step = w.dilation[d];
  for (int64_t o = 0; o < w.output[d]; ++o) {
    const int64_t start = o * w.stride[d] - w.pad_low[d];
    const int64_t first = start >= low ? 0 : (low - start + step - 1) / step;
    const int64_t end = start >= high ? 0 : (high - start + step - 1) / step;
    result.push_back(std::max<int64_t>(0, std::min(end, w.kernel[d]) - first));
  }
  return result;
}

// The reciprocals of the numbers of elements, at each place.
Tensor reciprocals(const std::vector<std::vector<int64_t>>& per_dim, const Shape& shape,
                   DType dtype) {
  Tensor scale(dtype, shape);
  for (int64_t flat = 0; flat < scale.size(); ++flat) {
    int64_t count = 1, rest = flat;
    for (size_t d = shape.size(); d-- > 0;) {
      count *= per_dim[d][static_cast<size_t>(rest % shape[d])];
      rest /= shape[d];
    }
    scale.set(flat, 1.0 / static_cast<double>(std::max<int64_t>(1, count)));
  }
  return scale;
}

void emit_average_pool(EmitContext& c) {
  const Window window = window_of(c.graph(), c.node());
  const bool with_padding = c.node().attributes.integer("count_include_pad", 0) != 0;
  emit_window(c, Combine::kSum, StageTag("sum_pool", "average_pool"), window);
  const DType dtype = compute_type(c.result().dtype);
  bool uniform = true;
  int64_t count = 1;
  std::vector<std::vector<int64_t>> per_dim;
  for (size_t d = 0; d < window.rank(); ++d) {
    per_dim.push_back(counts(window, d, with_padding));
    const int64_t first = per_dim[d][0];
    uniform =
        uniform && std::count(per_dim[d].begin(), per_dim[d].end(), first) == window.output[d];
    count *= std::max<int64_t>(1, first);
  }
  c.pointwise(StageTag("scale", ""), [&](const Point& point) {
    const Expr sum = c.last(point);
    if (uniform) return sum * literal(dtype, 1.0 / static_cast<double>(count));
    return sum * c.constant("scale", reciprocals(per_dim, window.output, dtype),
                            {point.index.begin() + 2, point.index.end()});
  });
}

void emit_global(EmitContext& c, Combine combine, const StageTag& tag) {
  const Shape& shape = c.input(0).shape;
  const size_t spatial = shape.size() - 2;
  c.name_dims(window_roles(spatial, "c"));
  std::vector<Axis> reduce;
  const std::vector<std::string> names = spatial_names(spatial, "k");
  for (size_t d = 0; d < spatial; ++d) reduce.push_back(compute::make_axis(names[d], shape[d + 2]));
  c.reduce(combine, tag, std::move(reduce), [&](const Point& point, const std::vector<Expr>& r) {
    std::vector<Expr> data = {point.index[0], point.index[1]};
    data.insert(data.end(), r.begin(), r.end());
    return c.read(0, "data", data);
  });
}

void emit_global_average(EmitContext& c) {
  const Shape& shape = c.input(0).shape;
  const int64_t count = num_elements(shape) / (shape[0] * shape[1]);
  emit_global(c, Combine::kSum, StageTag("sum_pool", "global_average_pool"));
  c.pointwise(StageTag("scale", ""), [&](const Point& point) {
    return c.last(point) *
           literal(compute_type(c.result().dtype), 1.0 / static_cast<double>(count));
  });
}

void emit_global_max(EmitContext& c) { emit_global(c, Combine::kMax, "global_max_pool"); }

bool like_operand(const Graph&, const Node& node, const std::vector<bool>& known) {
  return known[static_cast<size_t>(node.inputs[0])];
}

}  // namespace

std::span<const Op> pooling_ops() {
  static const Op ops[] = {
      {.name = "MaxPool",
       .max_outputs = 2,
       .kind = Kind::kReduction,
       .layout = Layout::kChannelsLast,
       .attributes =
           "auto_pad:s ceil_mode:i dilations:is kernel_shape:is pads:is storage_order:i strides:is",
       .infer = infer_pool,
       .expand = expand_max_pool,
       .emit = emit_max_pool,
       .padding = pool_padding,
       .non_negative = like_operand},
      {.name = "AveragePool",
       .kind = Kind::kReduction,
       .layout = Layout::kChannelsLast,
       .attributes =
           "auto_pad:s ceil_mode:i count_include_pad:i dilations:is kernel_shape:is pads:is strides:is",
       .infer = infer_average_pool,
       .emit = emit_average_pool,
       .padding = pool_padding,
       .non_negative = like_operand},
      {.name = "GlobalAveragePool",
       .kind = Kind::kReduction,
       .layout = Layout::kChannelsLast,
       .infer = infer_global_pool,
       .emit = emit_global_average,
       .non_negative = like_operand},
      {.name = "GlobalMaxPool",
       .kind = Kind::kReduction,
       .layout = Layout::kChannelsLast,
       .infer = infer_global_pool,
       .emit = emit_global_max,
       .non_negative = like_operand},
  };
  return ops;
}

}  // namespace hone::graph
