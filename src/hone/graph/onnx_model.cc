#include "hone/graph/onnx_model.h"

#include <filesystem>

#include "hone/graph/onnx_file.h"
#include "hone/graph/onnx_functions.h"
#include "hone/graph/onnx_node.h"
#include "hone/graph/op.h"

namespace hone::graph {

Result<std::unique_ptr<OnnxModel>> OnnxModel::open(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  std::unique_ptr<OnnxModel> model(new OnnxModel(path, folder));
  HONE_RETURN_IF_ERROR(parse_onnx_file(path, model->proto_));
  HONE_RETURN_IF_ERROR(model->prepare());
  return model;
}

Result<std::unique_ptr<OnnxModel>> OnnxModel::open_bytes(const void* data, size_t size,
                                                         const std::string& file,
                                                         const std::string& folder) {
  std::unique_ptr<OnnxModel> model(new OnnxModel(file, folder));
  HONE_RETURN_IF_ERROR(parse_onnx(data, size, file, model->proto_));
  HONE_RETURN_IF_ERROR(model->prepare());
  return model;
}

Status OnnxModel::prepare() {
  Status status = check();
  if (status.ok()) status = inline_functions(proto_, file_);
  return status.ok() ? status : Status(status.code(), printable(status.message()));
}

Status OnnxModel::check() {
  if (proto_.ir_version() < 3 || !proto_.has_graph()) {
    return fail("not an ONNX file, or truncated: it has no {}",
                proto_.has_graph() ? "IR version" : "graph");
  }
  bool found = false;
  for (const auto& entry : proto_.opset_import()) {
    if (!is_default_domain(entry.domain())) continue;
    if (entry.version() < kMinOpset || entry.version() > kMaxOpset) {
      return unsupported("opset {}, expected {} to {}", entry.version(), kMinOpset, kMaxOpset);
    }
    opset_ = static_cast<int>(entry.version());
    found = true;
  }
  if (!found && proto_.opset_import_size() > 0) opset_ = kMaxOpset;  // other domains only
  if (!found && proto_.opset_import_size() == 0)
    return fail("it declares no opset of the domain ai.onnx: truncated?");
  if (proto_.graph().sparse_initializer_size() > 0) return unsupported("sparse initializers");
  return ok_status();
}

Result<Tensor> OnnxModel::initializer(int index, bool linked_data) {
  onnx::TensorProto& tensor = *proto_.mutable_graph()->mutable_initializer(index);
  Result<Tensor> data = read_tensor(tensor, "initializer", source(linked_data));
  if (!data.ok()) return data;
  // Free the file's copy at once: the weights may be most of the memory.
  delete tensor.release_raw_data();
  tensor.clear_float_data();
  return data;
}

}  // namespace hone::graph
