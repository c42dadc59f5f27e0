#include <algorithm>

#include "hone/graph/op.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/passes/pass.h"

namespace hone::graph {
namespace {

// The weights [N, C, H, W] of the convolution that equals the product; nullopt if there is none.
std::optional<Tensor> conv_weight(const Graph& graph, const Node& node, const Shape& data) {
  const auto& b = graph.value(node.inputs[1]).constant;
  if (!b || b->shape().size() != 2) return std::nullopt;
  const int64_t depth = data[1] * data[2] * data[3];
  const bool transposed = node.attributes.integer("transB", 0) != 0;
  const int64_t columns = b->shape()[transposed ? 0 : 1];
  if (b->shape()[transposed ? 1 : 0] != depth) return std::nullopt;
  const Shape shape = {columns, data[1], data[2], data[3]};
  if (transposed) return b->reshaped(shape);
  Tensor weight(b->dtype(), shape);
  if (b->dtype() != DType::kF32) return std::nullopt;
  const auto from = b->as<float>();
  const auto to = weight.as<float>();
  for (int64_t n = 0; n < columns; ++n) {
    for (int64_t k = 0; k < depth; ++k) {
      to[static_cast<size_t>(n * depth + k)] = from[static_cast<size_t>(k * columns + n)];
    }
  }
  return weight;
}

bool plain_product(const Graph& graph, const Node& node) {
  if (node.type == "MatMul") return graph.value(node.outputs[0]).shape.size() == 2;
  if (node.type != "Gemm" || node.attributes.integer("transA", 0) != 0) return false;
  if (node.attributes.number("alpha", 1) != 1) return false;
  if (!node.has_input(2)) return true;
  // A bias per column.
  const Shape& c = graph.value(node.inputs[2]).shape;
  const int64_t columns = graph.value(node.outputs[0]).shape[1];
  return node.attributes.number("beta", 1) == 1 && !c.empty() && c.back() == columns &&
         num_elements(c) == columns && graph.value(node.inputs[2]).constant.has_value();
}

// Elementwise followers with constant scalars work on the convolution's own result, so that they
// can join its task: the view moves behind them.
void sink_view(Graph& graph, size_t view) {
  const Uses uses(graph);  // the readers of the view's result stay the same
  for (;;) {
    const ValueId flat = graph.nodes[view].outputs[0];
    const auto& readers = uses.readers[static_cast<size_t>(flat)];
    if (readers.size() != 1 || graph.is_output(flat)) return;
    Node& next = graph.nodes[static_cast<size_t>(readers[0])];
    bool simple = next.op->kind == Kind::kElementwise && next.inputs[0] == flat &&
                  next.outputs.size() == 1 && next.type != "BatchNormalization";
    for (size_t i = 1; simple && i < next.inputs.size(); ++i) {
      if (!next.has_input(i)) continue;
      const Value& other = graph.value(next.inputs[i]);
      simple = other.constant.has_value() && other.constant->size() == 1 && other.shape.size() <= 2;
    }
    if (!simple) return;
    const ValueId deep = graph.nodes[view].inputs[0];
    const Value result = graph.value(next.outputs[0]);
    const ValueId middle =
        graph.add_value(result.name + ".deep", result.dtype, graph.value(deep).shape);
    const ValueId last = next.outputs[0];
    next.inputs[0] = deep;
    next.outputs[0] = middle;
    graph.nodes[view].inputs[0] = middle;
    graph.nodes[view].outputs[0] = last;
    ++graph.rules["sink_view"];
  }
}

// Through any views back to a value of rank 4.
ValueId before_views(const Graph& graph, const Uses& uses, ValueId id) {
  for (;;) {
    const int producer = uses.producer[static_cast<size_t>(id)];
    if (producer < 0) return id;
    const Node& view = graph.nodes[static_cast<size_t>(producer)];
    if (!is_reshape(view)) return id;
    id = view.inputs[0];
  }
}

bool convert(Graph& graph, size_t index, ValueId data) {
  Node& node = graph.nodes[index];
  const auto weight = conv_weight(graph, node, graph.value(data).shape);
  if (!weight) return false;
  ++graph.rules[node.type];
  const ValueId flat = node.outputs[0];
  const Value result = graph.value(flat);
  const ValueId deep = graph.add_value(result.name + ".deep", result.dtype,
                                       {result.shape[0], result.shape[1], 1, 1});
  const std::string weight_name = graph.value(node.inputs[1]).name;
  node.inputs[0] = data;
  node.inputs[1] = graph.add_constant(weight_name + ".conv", *weight);
  if (node.has_input(2)) {
    const Tensor bias = graph.value(node.inputs[2]).constant->reshaped({result.shape[1]});
    node.inputs[2] = graph.add_constant(weight_name + ".bias", bias);
  }
  node.outputs[0] = deep;
  node.type = "Conv";
  node.op = find_op("Conv", graph.opset);
  node.attributes = {};
  node.attributes.set("kernel_shape", Shape{weight->shape()[2], weight->shape()[3]});
  Node view{.name = NodeNames(graph).take(node.name + ".flatten"),
            .type = "Flatten",
            .op = find_op("Flatten", graph.opset)};
  view.inputs = {deep};
  view.outputs = {flat};
  graph.nodes.push_back(std::move(view));
  sink_view(graph, graph.nodes.size() - 1);
  return true;
}

bool convert_one(Graph& graph) {
  choose_orders(graph);
  const Uses uses(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!plain_product(graph, graph.nodes[i])) continue;
    const ValueId data = before_views(graph, uses, graph.nodes[i].inputs[0]);
    const Value& value = graph.value(data);
    const int64_t rows = graph.value(graph.nodes[i].outputs[0]).shape[0];
    if (value.shape.size() != 4 || value.shape[0] != rows || value.shape[2] * value.shape[3] == 1)
      continue;
    if (is_plain(value)) continue;  // already in the order of the weights
    if (convert(graph, i, data)) return true;
  }
  return false;
}

}  // namespace

Status flatten_to_conv(Graph& graph) {
  while (convert_one(graph)) HONE_RETURN_IF_ERROR(sort_nodes(graph));
  return ok_status();
}

}  // namespace hone::graph
