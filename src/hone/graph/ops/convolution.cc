// Conv: ordinary, grouped and depthwise, of any spatial rank.
#include "hone/graph/emit.h"
#include "hone/graph/ops/pointwise.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/weights.h"
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
  if (group < 1 || w[0] % group != 0 || x[1] % group != 0 || w[1] != x[1] / group) {
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

// The reduce axes: the window's, then the channels that are summed.
std::vector<Axis> sum_axes(const Window& window, int64_t channels) {
  std::vector<Axis> reduce;
  const std::vector<std::string> names = spatial_names(window.rank(), "k");
  for (size_t d = 0; d < window.rank(); ++d)
    reduce.push_back(compute::make_axis(names[d], window.kernel[d]));
  if (channels > 0) reduce.push_back(compute::make_axis("ic", channels));
  return reduce;
}

// Data of a channel at a point of the window.
Expr data_at(EmitContext& c, const Window& window, const Point& point, const std::vector<Expr>& r,
             const Expr& channel) {
  std::vector<Expr> data = {point.index[0], channel};
  for (size_t d = 0; d < window.rank(); ++d) {
    data.push_back(point.index[d + 2] * window.stride[d] + r[d] * window.dilation[d] -
                   window.pad_low[d]);
  }
  return c.read_padded("data", data);
}

void emit_bias(EmitContext& c) {
  if (!c.node().has_input(2)) return;
  c.pointwise("bias", [&](const Point& point) {
    const Expr sum = c.last(point);
    return sum + c.read(2, "bias", {point.index[1]});
  });
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
  // The weights' shape with a dimension for groups: each dimension is one axis, so that they can be
  // packed.
  Shape by_group;
  if (grouped && c.input(1).constant) {
    by_group = weight;
    by_group[0] = group_out;
    by_group.insert(by_group.begin(), group);
  }
  const auto product = [&](const Point& point, const std::vector<Expr>& r) {
    Expr channel = depthwise ? point.index[1] : r.back();
    // The axis "g" stands just before "oc" in the space, wherever the layout puts the channels.
    if (grouped) channel = c.axis(point, "g") * group_in + channel;
    const Expr data = data_at(c, window, point, r, channel);
    std::vector<Expr> weights = {depthwise ? ir::constant(0) : r.back()};
    weights.insert(weights.end(), r.begin(), r.begin() + static_cast<long>(window.rank()));
    if (by_group.empty()) {
      weights.insert(weights.begin(), point.index[1]);
      return data * as_factor(c, c.read(1, "weight", weights));
    }
    weights.insert(weights.begin(), {c.axis(point, "g"), c.axis(point, "oc")});
    const Tensor grouped_weights = c.input(1).constant->reshaped(by_group);
    return data * as_factor(c, c.constant("weight", grouped_weights, weights));
  };
  std::string name = fmt::format("conv{}d", window.rank());
  if (depthwise) name = "depthwise_" + name;
  if (grouped) name = "grouped_" + name;
  c.reduce(Combine::kSum, StageTag(name.c_str()), sum_axes(window, depthwise ? 0 : group_in),
           product);
  emit_bias(c);
}

// hone.ConvGroupsInner: a grouped convolution whose channels lie with the groups innermost, which
// fill the vector lanes where a group has few channels: channel i * groups + g of the data and of
// the result is the i-th one of group g. Weights are [outputs of a group, groups, inputs of a
// group, window]. Passes make it (passes/groups_inner.cc), with its kernel_shape.
Status infer_groups_inner(InferContext& c) {
  const Shape& x = c.shape(0);
  const Shape& w = c.shape(1);
  if (x.size() < 3 || w.size() != x.size() + 1 || x[1] != w[1] * w[2])
    return c.fail("data of shape {} and weights of shape {}", to_string(x), to_string(w));
  const Result<Window> window = make_window(c.attributes(), x, Shape(w.begin() + 3, w.end()));
  if (!window.ok()) return c.fail("{}", window.status().message());
  Shape shape = {x[0], w[0] * w[1]};
  shape.insert(shape.end(), window->output.begin(), window->output.end());
  return c.set(0, c.dtype(0), std::move(shape));
}

void emit_groups_inner(EmitContext& c) {
  const Window window = window_of(c.graph(), c.node());
  const Shape& weight = c.input(1).shape;
  const int64_t groups = weight[1];
  c.name_dims(window_roles(window.rank(), "g"));
  c.split_dim(1, "oc", groups);
  const auto product = [&](const Point& point, const std::vector<Expr>& r) {
    const Expr group = c.axis(point, "g");
    const Expr data = data_at(c, window, point, r, r.back() * groups + group);
    std::vector<Expr> weights = {c.axis(point, "oc"), group, r.back()};
    weights.insert(weights.end(), r.begin(), r.end() - 1);
    return data * c.read(1, "weight", weights);
  };
  const std::string name = fmt::format("groups_conv{}d", window.rank());
  c.reduce(Combine::kSum, StageTag(name.c_str()), sum_axes(window, weight[2]), product);
  emit_bias(c);
}

// hone.ShuffleChannels: channels as `rows` rows of columns, which change places: channel
// i * columns + j of the data becomes channel j * rows + i.
Status infer_shuffle(InferContext& c) {
  const Shape& x = c.shape(0);
  const int64_t rows = c.attributes().integer("rows", 1);
  if (x.size() < 3 || rows < 1 || x[1] % rows != 0)
    return c.fail("{} rows of the channels of shape {}", rows, to_string(x));
  return c.set(0, c.dtype(0), x);
}

void emit_shuffle(EmitContext& c) {
  const Shape& shape = c.result().shape;
  const int64_t rows = c.node().attributes.integer("rows", 1), columns = shape[1] / rows;
  c.name_dims(window_roles(shape.size() - 2, "c"));
  c.split_dim(1, "column", rows);
  c.pointwise("shuffle", [&](const Point& point) {
    std::vector<Expr> index = point.index;
    index[1] = c.axis(point, "c") * columns + c.axis(point, "column");
    return c.read(0, "data", index);
  });
}

}  // namespace

std::span<const Op> convolution_ops() {
  const auto conv = [](const char* name, Status (*infer)(InferContext&),
                       void (*emit)(EmitContext&) = emit_conv) {
    return Op{.name = name,
              .min_inputs = 2,
              .max_inputs = 3,
              .kind = Kind::kContraction,
              .layout = Layout::kChannelsLast,
              .attributes = kConvolutionAttributes,
              .infer = infer,
              .emit = emit,
              .padding = conv_padding};
  };
  static const Op ops[] = {
      conv("Conv", infer_float_conv),
      conv("hone.ConvInteger", infer_conv),
      conv("hone.ConvGroupsInner", infer_groups_inner, emit_groups_inner),
      {.name = "hone.ShuffleChannels",
       .layout = Layout::kFollow,
       .attributes = "rows:i",
       .infer = infer_shuffle,
       .emit = emit_shuffle,
       .non_negative = like_operand},
  };
  return ops;
}

}  // namespace hone::graph
