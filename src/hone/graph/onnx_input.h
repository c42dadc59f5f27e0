// graph/onnx_input.h - what an ONNX model declares of an input, made definite by the options: open
// extents by --shape, values by --bind. Only for files that see the ONNX protobuf headers.
#pragma once

#include <onnx/onnx_pb.h>

#include "hone/graph/import_onnx.h"

namespace hone::graph {

struct DeclaredInput {
  DType dtype = DType::kF32;
  Shape shape;
  int64_t batch = -1;             // the model's own first extent; -1 if open
  const Tensor* bound = nullptr;  // its value, where it is known at compile time; of `options`
};

[[nodiscard]] Result<DeclaredInput> declared_input(const onnx::ValueInfoProto& input,
                                                   const ImportOptions& options,
                                                   const std::string& file);

// For each value the operands of its node. Taken before shapes are inferred, which changes nodes.
using Sources = std::map<ValueId, std::vector<ValueId>>;
[[nodiscard]] Sources sources_of_values(const Graph& graph);
// The inputs that a value has to be bound to so that all of graph.unknown_operands are known.
[[nodiscard]] std::vector<std::string> inputs_to_bind(const Graph& graph, const Sources& sources);

}  // namespace hone::graph
