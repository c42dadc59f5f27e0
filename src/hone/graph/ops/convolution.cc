// Conv: ordinary, grouped and depthwise, of any spatial rank.
#include "hone/graph/emit.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/window.h"

namespace hone::graph {
namespace {

using compute::Axis;
using ir::Expr;

Status infer_conv(InferContext& c) {
  const Shape& x = c.shape(0);
  const Shape& w = c.shape(1);
  if (x.size() < 3 || w.size() != x.size()) {
    return c.fail("data of shape {} and weights of shape {}", to_string(x), to_string(w));
  }
  if (c.dtype(1) != c.dtype(0)) {
    return c.fail("data of type {} and weights of type {}", dtype_name(c.dtype(0)),
                  dtype_name(c.dtype(1)));
  }
  const int64_t group = c.attributes().integer("group", 1);
  if (group < 1 || w[0] % group != 0 || w[1] > x[1] || x[1] != w[1] * group) {
    return c.fail("{} channels, {} groups and weights of shape {}", x[1], group, to_string(w));
  }
  if (c.has(2) && (c.shape(2) != Shape{w[0]} || c.dtype(2) != c.dtype(0))) {
    return c.fail("bias of type {} and shape {}, expected {} and [{}]", dtype_name(c.dtype(2)),
                  to_string(c.shape(2)), dtype_name(c.dtype(0)), w[0]);
  }
  const Result<Window> window = make_window(c.attributes(), x, Shape(w.begin() + 2, w.end()));
  if (!window.ok()) return c.fail("{}", window.status().message());
  Shape shape = {x[0], w[0]};
  shape.insert(shape.end(), window->output.begin(), window->output.end());
  return c.set(0, c.dtype(0), std::move(shape));
}

Status infer_float_conv(InferContext& c) {
  if (!is_float(c.dtype(0))) return c.fail("data of type {}", dtype_name(c.dtype(0)));
  return infer_conv(c);
}

Padding conv_padding(const Graph& graph, const Node& node) {
  return window_padding(window_of(graph, node), graph.value(node.inputs[0]).shape.size());
}

void emit_conv(EmitContext& c) {
  const Window window = window_of(c.graph(), c.node());
  const Shape& weight = c.input(1).shape;
  const int64_t group = c.node().attributes.integer("group", 1);
  const int64_t group_in = weight[1], group_out = weight[0] / group;
  const bool depthwise = group > 1 && group_in == 1 && group_out == 1;
  const bool grouped = group > 1 && !depthwise;
  c.name_dims(window_roles(window.rank(), depthwise ? "c" : "oc"));
  if (grouped) c.split_dim(1, "g", group_out);

  std::vector<Axis> reduce;
  const std::vector<std::string> names = spatial_names(window.rank(), "k");
  for (size_t d = 0; d < window.rank(); ++d)
    reduce.push_back(compute::make_axis(names[d], window.kernel[d]));
  if (!depthwise) reduce.push_back(compute::make_axis("ic", group_in));

  const auto product = [&](const Point& point, const std::vector<Expr>& r) {
    Expr channel = depthwise ? point.index[1] : r.back();
    // The axis "g" stands just before "oc" in the space, wherever the layout puts the channels.
    if (grouped) channel = c.axis(point, "g") * group_in + channel;
    std::vector<Expr> data = {point.index[0], channel};
    std::vector<Expr> weights = {point.index[1], depthwise ? ir::constant(0) : r.back()};
    for (size_t d = 0; d < window.rank(); ++d) {
      data.push_back(point.index[d + 2] * window.stride[d] + r[d] * window.dilation[d] -
                     window.pad_low[d]);
      weights.push_back(r[d]);
    }
    const Expr x = c.read_padded("data", data);
    const Expr w = c.read(1, "weight", weights);
    return x * w;
  };
  std::string name = fmt::format("conv{}d", window.rank());
  if (depthwise) name = "depthwise_" + name;
  if (grouped) name = "grouped_" + name;
  c.reduce(Combine::kSum, StageTag(name.c_str()), std::move(reduce), product);
  if (c.node().has_input(2)) {
    c.pointwise("bias", [&](const Point& point) {
      const Expr sum = c.last(point);
      return sum + c.read(2, "bias", {point.index[1]});
    });
  }
}

}  // namespace

std::span<const Op> convolution_ops() {
  const auto conv = [](const char* name, Status (*infer)(InferContext&)) {
    return Op{.name = name,
              .min_inputs = 2,
              .max_inputs = 3,
              .kind = Kind::kContraction,
              .layout = Layout::kChannelsLast,
              .attributes = "auto_pad:s dilations:is group:i kernel_shape:is pads:is strides:is",
              .infer = infer,
              .emit = emit_conv,
              .padding = conv_padding};
  };
  static const Op ops[] = {
      conv("Conv", infer_float_conv),
      conv("hone.ConvInteger", infer_conv),
  };
  return ops;
}

}  // namespace hone::graph
