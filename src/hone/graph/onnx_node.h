// graph/onnx_node.h - reads a single ONNX node for the importer: its name, its attributes, and
// whether its operator is supported. Only files that see the ONNX protobuf headers include this.
#pragma once

#include <onnx/onnx_pb.h>

#include "hone/graph/graph.h"
#include "hone/graph/onnx_tensor.h"

namespace hone::graph {

// Returns a text from a file with '?' for control characters, which would break a message.
[[nodiscard]] std::string printable(std::string text);
// Returns the node's name or, if it has none, that of its first result.
[[nodiscard]] std::string node_name(const onnx::NodeProto& node);
[[nodiscard]] bool is_default_domain(const std::string& domain);
// Gives a node of the default domain an opset of its own, as nodes of a function have; 0: the
// model's. It is kept in the node's domain, as "ai.onnx@17".
void set_node_opset(onnx::NodeProto& node, int opset);

// The operator that a node names.
struct NamedOperator {
  std::string type;        // with its domain, unless that is the default one: "com.microsoft.Gelu"
  int opset = 0;           // 0: the model's
  const Op* op = nullptr;  // null if it is not supported
};
// The parameter `opset` is the model's.
[[nodiscard]] NamedOperator find_operator(const onnx::NodeProto& node, int opset);
// Returns one error for all nodes whose operator is not supported in this opset.
[[nodiscard]] Status check_operators(const onnx::GraphProto& graph, int opset,
                                     const std::string& file);
// Reads the attributes into node.attributes; `node` has its name and type already.
[[nodiscard]] Status read_attributes(const onnx::NodeProto& from, const TensorSource& source,
                                     Node& node);

}  // namespace hone::graph
