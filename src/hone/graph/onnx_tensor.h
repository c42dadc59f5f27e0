// graph/onnx_tensor.h - tensors of ONNX files: inside, as external data, or alone in a file (.pb).
// Of the graph library only import_onnx.cc and onnx_*.cc see the ONNX protobuf headers.
#pragma once

#include <string>

#include "hone/base/status.h"
#include "hone/tensor/tensor.h"

namespace onnx {
class TensorProto;
}

namespace hone::graph {

// A file open for reading; fd < 0 if that failed.
struct File {
  explicit File(const std::string& path);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] Result<int64_t> size() const;
  int fd;
};

// Where a tensor comes from: the file, for messages, and the folder of its external data.
struct TensorSource {
  const std::string& file;
  const std::string& folder;
};

// `what` names its part in messages: "initializer".
[[nodiscard]] Result<Tensor> read_tensor(const onnx::TensorProto& from, const std::string& what,
                                         const TensorSource& source);

struct NamedTensor {
  std::string name;
  Tensor tensor;
};
// A file with a single serialized TensorProto, as in ONNX's test data.
[[nodiscard]] Result<NamedTensor> read_tensor_file(const std::string& path);

}  // namespace hone::graph
