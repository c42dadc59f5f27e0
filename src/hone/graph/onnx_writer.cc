#include "hone/graph/onnx_writer.h"

#include <onnx/onnx_pb.h>

#include "hone/graph/onnx_file.h"
#include "hone/graph/onnx_tensor.h"
#include "hone/tensor/small_types.h"

namespace hone::graph {
namespace {

constexpr int kIrVersion = 8;  // the first with opset 15 to 17
constexpr const char* kOpenExtent = "batch";

void fill(onnx::TensorProto& to, const Tensor& from) {
  to.set_data_type(static_cast<int>(from.dtype()));
  for (const int64_t extent : from.shape()) to.add_dims(extent);
  if (elements_per_byte(from.dtype()) > 1)
    to.set_raw_data(packed(from));
  else
    to.set_raw_data(from.data(), static_cast<size_t>(from.bytes()));
}

void describe(onnx::ValueInfoProto& value, const std::string& name, const Shape& shape,
              DType dtype) {
  value.set_name(name);
  auto* type = value.mutable_type()->mutable_tensor_type();
  type->set_elem_type(static_cast<int>(dtype));
  type->mutable_shape();
  for (const int64_t extent : shape) {
    auto* dim = type->mutable_shape()->add_dim();
    if (extent < 0)
      dim->set_dim_param(kOpenExtent);
    else
      dim->set_dim_value(extent);
  }
}

void set(onnx::AttributeProto& to, const Attribute& value) {
  using A = onnx::AttributeProto;
  if (const auto* i = std::get_if<int64_t>(&value)) to.set_type(A::INT), to.set_i(*i);
  if (const auto* f = std::get_if<float>(&value)) to.set_type(A::FLOAT), to.set_f(*f);
  if (const auto* s = std::get_if<std::string>(&value)) to.set_type(A::STRING), to.set_s(*s);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    to.set_type(A::INTS);
    for (const int64_t i : *list) to.add_ints(i);
  }
  if (const auto* list = std::get_if<std::vector<float>>(&value)) {
    to.set_type(A::FLOATS);
    for (const float f : *list) to.add_floats(f);
  }
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
    to.set_type(A::STRINGS);
    for (const std::string& s : *list) to.add_strings(s);
  }
  if (const auto* tensor = std::get_if<Tensor>(&value)) {
    to.set_type(A::TENSOR);
    fill(*to.mutable_t(), *tensor);
  }
}

}  // namespace

OnnxWriter::OnnxWriter(const std::string& name, int opset)
    : model_(std::make_unique<onnx::ModelProto>()) {
  model_->set_ir_version(kIrVersion);
  model_->add_opset_import()->set_version(opset);
  model_->mutable_graph()->set_name(name);
}

OnnxWriter::OnnxWriter(OnnxWriter&&) noexcept = default;
OnnxWriter& OnnxWriter::operator=(OnnxWriter&&) noexcept = default;
OnnxWriter::~OnnxWriter() = default;

void OnnxWriter::input(const std::string& name, const Shape& shape, DType dtype) {
  describe(*model_->mutable_graph()->add_input(), name, shape, dtype);
}

void OnnxWriter::output(const std::string& name, const Shape& shape, DType dtype) {
  describe(*model_->mutable_graph()->add_output(), name, shape, dtype);
}

void OnnxWriter::constant(const std::string& name, const Tensor& tensor) {
  auto* to = model_->mutable_graph()->add_initializer();
  to->set_name(name);
  fill(*to, tensor);
}

void OnnxWriter::node(const std::string& type, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs, const AttributeList& attributes,
                      const std::string& domain) {
  auto* node = model_->mutable_graph()->add_node();
  node->set_op_type(type);
  node->set_domain(domain);
  node->set_name("node_" + outputs[0]);
  for (const std::string& name : inputs) node->add_input(name);
  for (const std::string& name : outputs) node->add_output(name);
  for (const auto& [name, value] : attributes) {
    auto* attribute = node->add_attribute();
    attribute->set_name(name);
    set(*attribute, value);
  }
}

void OnnxWriter::note(const std::string& key, const std::string& value) {
  auto* entry = model_->add_metadata_props();
  entry->set_key(key);
  entry->set_value(value);
}

std::string OnnxWriter::bytes() const { return model_->SerializeAsString(); }

Result<OnnxSummary> read_onnx_summary(std::string_view bytes, const std::string& file) {
  onnx::ModelProto model;
  HONE_RETURN_IF_ERROR(parse_onnx(bytes.data(), bytes.size(), file, model));
  OnnxSummary summary;
  for (const onnx::StringStringEntryProto& entry : model.metadata_props())
    summary.notes[entry.key()] = entry.value();
  for (const onnx::ValueInfoProto& input : model.graph().input())
    summary.inputs.push_back(input.name());
  return summary;
}

Result<std::map<std::string, Tensor>> read_onnx_constants(std::string_view bytes,
                                                          const std::string& file) {
  onnx::ModelProto model;
  HONE_RETURN_IF_ERROR(parse_onnx(bytes.data(), bytes.size(), file, model));
  std::map<std::string, Tensor> constants;
  const std::string folder;  // nothing lies outside of the file
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    HONE_ASSIGN_OR_RETURN(constants[tensor.name()],
                          read_tensor(tensor, "constant", {file, folder}));
  }
  return constants;
}

}  // namespace hone::graph
