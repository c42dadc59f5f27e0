// graph/import_onnx.h - a Graph from an ONNX file: opsets 7 to 28, weights inside or in external
// data, shapes inferred. Every defect of the model is one error that names file and node.
#pragma once

#include <map>
#include <set>
#include <string>

#include "hone/graph/graph.h"

namespace hone::graph {

struct ImportOptions {
  std::map<std::string, Shape> shapes;  // of inputs whose shape the model leaves open (--shape)
  // Inputs that become constants (--bind): where a value decides a shape.
  std::map<std::string, Tensor> bind;
  // If not null, receives the inputs that would have to be bound, when that is what was wrong.
  std::vector<std::string>* unbound = nullptr;
  // External data may be a symbolic link that leads out of the model's folder, as in a cache of
  // Hugging Face: what the link leads to is trusted. A path that leaves the folder is refused.
  bool linked_data = false;
  // If not null, receives the files that are read: the model and its external data.
  std::set<std::string>* files = nullptr;
};

[[nodiscard]] Result<Graph> import_onnx(const std::string& path, const ImportOptions& options = {});
// The same with those of the `available` inputs bound whose values decide shapes, and no others.
[[nodiscard]] Result<Graph> import_onnx_binding(const std::string& path, ImportOptions options,
                                                const std::map<std::string, Tensor>& available);
// The names of a model's inputs, in its order, initializers left out.
[[nodiscard]] Result<std::vector<std::string>> input_names(const std::string& path);
// From memory; external data is looked up in `folder`.
[[nodiscard]] Result<Graph> import_onnx_bytes(const void* data, size_t size,
                                              const std::string& file, const std::string& folder,
                                              const ImportOptions& options = {});

}  // namespace hone::graph
