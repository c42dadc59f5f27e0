// graph/onnx_model.h - an ONNX model in memory, for all imports of it: it is parsed once, its
// functions are put in, and its weights are read once and shared by all graphs that are made of it.
// Only files that see the ONNX protobuf headers include this.
#pragma once

#include <onnx/onnx_pb.h>

#include <memory>

#include "hone/graph/onnx_tensor.h"

namespace hone::graph {

class OnnxModel {
 public:
  // An error names the file, and what is wrong with it whatever is imported of it.
  [[nodiscard]] static Result<std::unique_ptr<OnnxModel>> open(const std::string& path);
  // Takes a model from memory. External data is looked up in `folder`.
  [[nodiscard]] static Result<std::unique_ptr<OnnxModel>> open_bytes(const void* data, size_t size,
                                                                     const std::string& file,
                                                                     const std::string& folder);
  OnnxModel(const OnnxModel&) = delete;
  OnnxModel& operator=(const OnnxModel&) = delete;

  [[nodiscard]] const std::string& file() const { return file_; }  // for messages
  [[nodiscard]] const onnx::GraphProto& graph() const { return proto_.graph(); }
  [[nodiscard]] int opset() const { return opset_; }
  [[nodiscard]] TensorSource source(bool linked_data) {
    return {file_, folder_, linked_data, &read_};
  }
  [[nodiscard]] Result<Tensor> initializer(int index, bool linked_data);
  // The files of external data that were read.
  [[nodiscard]] const std::set<std::string>& files() const { return read_.files; }

 private:
  OnnxModel(std::string file, std::string folder)
      : file_(std::move(file)), folder_(std::move(folder)) {}
  [[nodiscard]] Status prepare();
  [[nodiscard]] Status check();
  template <typename... Args>
  [[nodiscard]] Status fail(fmt::format_string<Args...> format, Args&&... args) const {
    return invalid("{}: {}", file_, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  [[nodiscard]] Status unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    return error(Code::kUnsupported, "{}: {}", file_,
                 fmt::format(format, std::forward<Args>(args)...));
  }

  const std::string file_, folder_;
  onnx::ModelProto proto_;
  int opset_ = 0;
  ReadTensors read_;
};

}  // namespace hone::graph
