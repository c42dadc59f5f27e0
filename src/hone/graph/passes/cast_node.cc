#include "hone/graph/passes/cast_node.h"

#include "hone/graph/ops/registry.h"

namespace hone::graph {

Node cast_node(const Graph& graph, NodeNames& names, ValueId from, ValueId to) {
  Node node;
  node.type = "Cast";
  node.name = names.take(graph.value(to).name + ".cast");
  node.op = find_op(node.type, graph.opset);
  node.attributes.set("to", static_cast<int64_t>(graph.value(to).dtype));
  node.inputs = {from};
  node.outputs = {to};
  return node;
}

}  // namespace hone::graph
