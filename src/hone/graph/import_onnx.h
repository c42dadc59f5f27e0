// graph/import_onnx.h - a Graph from an ONNX file: opsets 9 to 28, weights inside or in external
// data, shapes inferred. Every defect of the model is one error that names file and node.
#pragma once

#include <map>

#include "hone/graph/graph.h"

namespace hone::graph {

struct ImportOptions {
  std::map<std::string, Shape> shapes;  // of inputs whose shape the model leaves open (--shape)
};

[[nodiscard]] Result<Graph> import_onnx(const std::string& path, const ImportOptions& options = {});
// From memory; external data is looked up in `folder`.
[[nodiscard]] Result<Graph> import_onnx_bytes(const void* data, size_t size,
                                              const std::string& file, const std::string& folder,
                                              const ImportOptions& options = {});

}  // namespace hone::graph
