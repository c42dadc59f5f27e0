#include <algorithm>
#include <cmath>

#include "hone/graph/op.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/passes/pass.h"

namespace hone::graph {
namespace {

// y = x * scale + shift, per channel, in double.
struct Affine {
  std::vector<double> scale, shift;
};

std::optional<Affine> constant_affine(const Graph& graph, const Node& node) {
  const Tensor* parameter[4];
  for (size_t i = 0; i < 4; ++i) {
    const auto& constant = graph.value(node.inputs[i + 1]).constant;
    if (!constant) return std::nullopt;
    parameter[i] = &*constant;
  }
  const double epsilon = node.attributes.number("epsilon", 1e-5f);
  Affine affine;
  for (int64_t c = 0; c < parameter[0]->size(); ++c) {
    const double scale = parameter[0]->at(c) / std::sqrt(parameter[3]->at(c) + epsilon);
    affine.scale.push_back(scale);
    affine.shift.push_back(parameter[1]->at(c) - parameter[2]->at(c) * scale);
  }
  return affine;
}

// Scales the weights and the bias of the node that makes operand 0; false if it is no such node.
bool fold_into_producer(Graph& graph, const Node& norm, const Affine& affine, const Uses& uses) {
  const ValueId data = norm.inputs[0];
  const int producer = uses.producer[static_cast<size_t>(data)];
  if (producer < 0 || uses.readers[static_cast<size_t>(data)].size() != 1 || graph.is_output(data))
    return false;
  Node& node = graph.nodes[static_cast<size_t>(producer)];
  const bool gemm = node.type == "Gemm" && node.attributes.number("beta", 1) == 1;
  if (node.type != "Conv" && !gemm) return false;
  const auto channels = static_cast<int64_t>(affine.scale.size());
  const auto& weight = graph.value(node.inputs[1]).constant;
  const bool has_bias = node.has_input(2);
  if (!weight || (has_bias && (!graph.value(node.inputs[2]).constant ||
                               graph.value(node.inputs[2]).shape != Shape{channels}))) {
    return false;
  }
  Tensor scaled = weight->clone();
  const bool last =
      gemm && node.attributes.integer("transB", 0) == 0;  // channels are the last dimension
  const int64_t inner = last ? 1 : scaled.size() / channels;
  for (int64_t i = 0; i < scaled.size(); ++i) {
    scaled.set(i, scaled.at(i) * affine.scale[static_cast<size_t>(i / inner % channels)]);
  }
  Tensor bias(scaled.dtype(), {channels});
  for (int64_t c = 0; c < channels; ++c) {
    const double old = has_bias ? graph.value(node.inputs[2]).constant->at(c) : 0;
    bias.set(c, old * affine.scale[static_cast<size_t>(c)] + affine.shift[static_cast<size_t>(c)]);
  }
  node.inputs.resize(3, kNoValue);
  const std::string weight_name = graph.value(node.inputs[1]).name;
  node.inputs[1] = graph.add_constant(weight_name + ".scaled", std::move(scaled));
  node.inputs[2] = graph.add_constant(weight_name + ".bias", std::move(bias));
  return true;
}

// As elementwise operators with constants of shape [C, 1, 1].
void replace_by_mul_add(Graph& graph, size_t index, const Affine& affine) {
  const Node norm = graph.nodes[index];
  const Value result = graph.value(norm.outputs[0]);
  Shape shape(result.shape.size() - 1, 1);
  shape[0] = static_cast<int64_t>(affine.scale.size());
  Tensor scale(result.dtype, shape), shift(result.dtype, shape);
  for (int64_t c = 0; c < scale.size(); ++c) {
    scale.set(c, affine.scale[static_cast<size_t>(c)]);
    shift.set(c, affine.shift[static_cast<size_t>(c)]);
  }
  const ValueId product = graph.add_value(result.name + ".scaled", result.dtype, result.shape);
  Node mul{.name = graph.unique_node_name(norm.name + ".scale"),
           .type = "Mul",
           .op = find_op("Mul", graph.opset)};
  mul.inputs = {norm.inputs[0], graph.add_constant(norm.name + ".scale", std::move(scale))};
  mul.outputs = {product};
  Node add{.name = norm.name, .type = "Add", .op = find_op("Add", graph.opset)};
  add.inputs = {product, graph.add_constant(norm.name + ".shift", std::move(shift))};
  add.outputs = {norm.outputs[0]};
  graph.nodes[index] = std::move(add);
  graph.nodes.push_back(std::move(mul));
}

}  // namespace

Status fold_batch_norm(Graph& graph) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].type != "BatchNormalization") continue;
    const auto affine = constant_affine(graph, graph.nodes[i]);
    if (!affine) continue;
    const Uses uses(graph);
    if (fold_into_producer(graph, graph.nodes[i], *affine, uses)) {
      // The product makes the normalized value now; the one that was in between is gone.
      const ValueId between = graph.nodes[i].inputs[0];
      graph.nodes[static_cast<size_t>(uses.producer[static_cast<size_t>(between)])].outputs[0] =
          graph.nodes[i].outputs[0];
      graph.nodes.erase(graph.nodes.begin() + static_cast<std::ptrdiff_t>(i--));
      continue;
    }
    replace_by_mul_add(graph, i, *affine);
  }
  return sort_nodes(graph);
}

}  // namespace hone::graph
