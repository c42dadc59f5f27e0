// context.h - nodes of the type EPContext (domain com.microsoft), by which an ONNX model keeps a
// library instead of the nodes that it was compiled from. The library is a file beside the model,
// or the value of an attribute.
#pragma once

#include <string>

#include "ort_graph.h"
#include "settings.h"

namespace hone::ort {

// Returns whether the node has a library that this provider wrote.
[[nodiscard]] Result<bool> is_own_context(const OrtApi& api, const GraphNode& node);

// Makes the node that takes the place of a fused one, and writes the library beside the model, if
// the settings say so. `number` tells the libraries of one model apart.
[[nodiscard]] Result<OrtNode*> make_context_node(const OrtApi& api, const Settings& settings,
                                                 const GraphNode& fused, const std::string& library,
                                                 const std::string& model_path, int number);

// Returns the path of the library of such a node. One that is inside of the model is written to
// `file`.
[[nodiscard]] Result<std::string> find_context_library(const OrtApi& api, const GraphNode& node,
                                                       const std::string& model_path,
                                                       const std::string& file);

}  // namespace hone::ort
