// graph/onnx_node.h - what the importer reads of a single ONNX node: its name, its attributes, and
// whether its operator is supported. Only for files that see the ONNX protobuf headers.
#pragma once

#include <onnx/onnx_pb.h>

#include "hone/graph/graph.h"
#include "hone/graph/onnx_tensor.h"

namespace hone::graph {

// Text from a file without what would break a message: control characters become '?'.
[[nodiscard]] std::string printable(std::string text);
// The name it has or, if it has none, that of its first result.
[[nodiscard]] std::string node_name(const onnx::NodeProto& node);
[[nodiscard]] bool is_default_domain(const std::string& domain);
// One error for all nodes whose operator is not supported in this opset.
[[nodiscard]] Status check_operators(const onnx::GraphProto& graph, int opset,
                                     const std::string& file);
// Into node.attributes; `node` has its name and type already.
[[nodiscard]] Status read_attributes(const onnx::NodeProto& from, const TensorSource& source,
                                     Node& node);

}  // namespace hone::graph
