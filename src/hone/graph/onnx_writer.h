// graph/onnx_writer.h - builds an ONNX model node by node, and reads the notes in such a file.
#pragma once

#include <map>
#include <memory>

#include "hone/graph/attributes.h"

namespace onnx {
class ModelProto;
}

namespace hone::graph {

using AttributeList = std::vector<std::pair<std::string, Attribute>>;

class OnnxWriter {
 public:
  OnnxWriter(const std::string& name, int opset);
  OnnxWriter(OnnxWriter&&) noexcept;
  OnnxWriter& operator=(OnnxWriter&&) noexcept;
  ~OnnxWriter();
  // Adds an input. An extent of -1 is open; all open extents have one size.
  void input(const std::string& name, const Shape& shape, DType dtype = DType::kF32);
  void output(const std::string& name, const Shape& shape, DType dtype = DType::kF32);
  void constant(const std::string& name, const Tensor& tensor);
  // Adds a node. Its name is that of its first output with "node_" before it. There are no
  // subgraphs.
  void node(const std::string& type, const std::vector<std::string>& inputs,
            const std::vector<std::string>& outputs, const AttributeList& attributes = {},
            const std::string& domain = "");
  void note(const std::string& key, const std::string& value);
  [[nodiscard]] std::string bytes() const;  // contents of the file
  [[nodiscard]] onnx::ModelProto& proto() { return *model_; }

 private:
  std::unique_ptr<onnx::ModelProto> model_;
};

// A summary of a file.
struct OnnxSummary {
  std::map<std::string, std::string> notes;  // as note() wrote them
  std::vector<std::string> inputs;           // names in order
};
[[nodiscard]] Result<OnnxSummary> read_onnx_summary(std::string_view bytes,
                                                    const std::string& file);
// Reads the tensors that constant() wrote, by name.
[[nodiscard]] Result<std::map<std::string, Tensor>> read_onnx_constants(std::string_view bytes,
                                                                        const std::string& file);

}  // namespace hone::graph
