// graph/onnx_subgraph.h - reads graph-valued attributes (internal to the importer).
#pragma once

#include "hone/graph/onnx_node.h"
#include "hone/graph/subgraph.h"

namespace hone::graph {

// Returns the value of the enclosing graph with this name; nothing if there is none.
using OuterValue = std::function<std::optional<ValueId>(const std::string& name)>;

// Sets the graph-valued attributes of `node`, whose own operands are complete, and appends to its
// operands the enclosing graph's values that they read.
[[nodiscard]] Status read_subgraphs(const onnx::NodeProto& from, const TensorSource& source,
                                    int opset, const OuterValue& outer, Node& node);

}  // namespace hone::graph
