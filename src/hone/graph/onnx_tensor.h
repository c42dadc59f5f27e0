// graph/onnx_tensor.h - tensors of ONNX files: inside, as external data, or alone in a file (.pb).
// Of the graph library only import_onnx.cc and onnx_*.cc see the ONNX protobuf headers.
#pragma once

#include <set>
#include <string>

#include "hone/base/status.h"
#include "hone/tensor/tensor.h"

namespace onnx {
class TensorProto;
}

namespace hone::graph {

// A file open for reading, which waits for nobody; fd < 0 if that failed.
struct File {
  explicit File(const std::string& path, bool follow_link = true);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] Result<int64_t> size() const;
  int fd;
};

// What was read beside a model's own file.
struct ExternalData {
  std::set<std::string> files;
  int64_t bytes = 0;  // of all tensors
};

// Where a tensor comes from.
struct TensorSource {
  const std::string& file;    // for messages
  const std::string& folder;  // of its external data
  // External data may be a symbolic link that leads out of the folder.
  bool linked_data = false;
  ExternalData* read = nullptr;  // if not null, is added to
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
