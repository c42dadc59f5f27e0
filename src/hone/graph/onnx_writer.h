// graph/onnx_writer.h - puts an ONNX model together, node by node, and reads back the notes that it
// carries.
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
  // An extent of -1 is open: all that are have one size.
  void input(const std::string& name, const Shape& shape, DType dtype = DType::kF32);
  void output(const std::string& name, const Shape& shape, DType dtype = DType::kF32);
  void constant(const std::string& name, const Tensor& tensor);
  // The node gets the name of its first output, with "node_" before it. No subgraphs.
  void node(const std::string& type, const std::vector<std::string>& inputs,
            const std::vector<std::string>& outputs, const AttributeList& attributes = {},
            const std::string& domain = "");
  void note(const std::string& key, const std::string& value);
  [[nodiscard]] std::string bytes() const;  // of the file
  [[nodiscard]] onnx::ModelProto& proto() { return *model_; }

 private:
  std::unique_ptr<onnx::ModelProto> model_;
};

// What a file says of itself.
struct OnnxSummary {
  std::map<std::string, std::string> notes;  // that note() wrote
  std::vector<std::string> inputs;           // by name, in order
};
[[nodiscard]] Result<OnnxSummary> read_onnx_summary(std::string_view bytes,
                                                    const std::string& file);
// The tensors that constant() wrote, by name.
[[nodiscard]] Result<std::map<std::string, Tensor>> read_onnx_constants(std::string_view bytes,
                                                                        const std::string& file);

}  // namespace hone::graph
