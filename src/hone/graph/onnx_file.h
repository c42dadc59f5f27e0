// graph/onnx_file.h - parses the protobuf of an ONNX model from memory or from a file. Data that is
// no model, is cut off or is nested too deeply is an error that names the file.
#pragma once

#include <string>

#include "hone/base/status.h"

namespace onnx {
class ModelProto;
}

namespace hone::graph {

[[nodiscard]] Status parse_onnx(const void* data, size_t size, const std::string& file,
                                onnx::ModelProto& model);
[[nodiscard]] Status parse_onnx_file(const std::string& path, onnx::ModelProto& model);

}  // namespace hone::graph
