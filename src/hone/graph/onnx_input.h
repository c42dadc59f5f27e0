// graph/onnx_input.h - makes the declaration of an ONNX model's input definite by the options: open
// extents by --shape, values by --bind. Only files that see the ONNX protobuf headers include this.
#pragma once

#include <onnx/onnx_pb.h>

#include "hone/graph/import_onnx.h"

namespace hone::graph {

struct DeclaredInput {
  DType dtype = DType::kF32;
  Shape shape;
  int64_t batch = -1;           // first extent in the model; -1 if it is open
  std::optional<Tensor> bound;  // value of `options`, if it is known at compile time
  // Extents in the file, symbols included, where no option makes them definite.
  std::optional<std::vector<std::string>> open;
};

// Returns the names of the initializers that are constants. An input with an initializer of its
// name is optional: where the options give a value or a shape for it, it is an input like others.
[[nodiscard]] std::set<std::string> constant_initializers(const onnx::GraphProto& graph,
                                                          const ImportOptions& options);

// An input whose extents stay open is no error yet: that names all of them (open_inputs()).
[[nodiscard]] Result<DeclaredInput> declared_input(const onnx::ValueInfoProto& input,
                                                   const ImportOptions& options,
                                                   const std::string& file);

// Returns ok, or the error that asks for the shapes of the inputs that are open.
struct OpenInput {
  std::string name;
  std::vector<std::string> extents;  // empty: not even the rank is known
  // Examples for --shape, for the message: a shape and ranges; empty if there is none.
  std::string shape, ranges;
};
[[nodiscard]] Status open_inputs(const std::vector<OpenInput>& open, const std::string& file);
// Returns ok if all names that the options give a shape or value for are inputs, of which those of
// the constants are none.
[[nodiscard]] Status check_given_names(const onnx::GraphProto& graph,
                                       const std::set<std::string>& constants,
                                       const ImportOptions& options, const std::string& file);

// For each value, the operands of its node. They are collected before shapes are inferred, which
// changes nodes.
using Sources = std::map<ValueId, std::vector<ValueId>>;
[[nodiscard]] Sources sources_of_values(const Graph& graph);
// Returns the inputs that have to be bound so that all of graph.unknown_operands are known.
[[nodiscard]] std::vector<std::string> inputs_to_bind(const Graph& graph, const Sources& sources);

}  // namespace hone::graph
