// graph/onnx_tensor.h - reads tensors of ONNX files: inside the model, as external data, or alone
// in a file (.pb). In the graph library only import_onnx.cc and onnx_*.cc see the ONNX protobuf
// headers.
#pragma once

#include <map>
#include <set>
#include <string>

#include "hone/base/status.h"
#include "hone/tensor/tensor.h"

namespace onnx {
class TensorProto;
}

namespace hone::graph {

// A file that is open for reading without waiting; fd < 0 if opening failed.
struct File {
  explicit File(const std::string& path, bool follow_link = true);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] Result<int64_t> size() const;
  int fd;
};

// The tensors of a model that were read. Each is read once: whoever reads it again shares its data.
struct ReadTensors {
  std::map<const onnx::TensorProto*, Tensor> tensors;
  std::set<std::string> files;  // those of external data
  int64_t bytes = 0;            // size of all tensors of external data
};

// The place of a tensor's data.
struct TensorSource {
  const std::string& file;    // for messages
  const std::string& folder;  // folder of its external data
  // Allows external data to be a symbolic link that leads out of the folder.
  bool linked_data = false;
  ReadTensors* read = nullptr;  // if not null, what is read is added to it
};

// Reads a tensor. `what` names its role in messages: "initializer".
[[nodiscard]] Result<Tensor> read_tensor(const onnx::TensorProto& from, const std::string& what,
                                         const TensorSource& source);

struct NamedTensor {
  std::string name;
  Tensor tensor;
};
// Reads a file with a single serialized TensorProto, as in ONNX's test data.
[[nodiscard]] Result<NamedTensor> read_tensor_file(const std::string& path);

}  // namespace hone::graph
