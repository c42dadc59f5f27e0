// graph/onnx_functions.h - the functions that a model brings along (internal to the importer): each
// call is replaced by the function's nodes, so that nothing behind the importer knows functions.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "hone/base/status.h"

namespace hone::graph {

// Replaces the calls of the model's functions in its graph and in the graphs inside, and removes
// the functions. A function goes before an operator of its name. Values get new names, which begin
// with the call's; nodes of an opset that is not the model's keep it (set_node_opset). A function
// that calls itself, or whose nodes fit no call, is an error.
[[nodiscard]] Status inline_functions(onnx::ModelProto& model, const std::string& file);

}  // namespace hone::graph
