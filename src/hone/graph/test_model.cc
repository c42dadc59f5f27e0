#include "hone/graph/test_model.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <cmath>

#include "hone/graph/evaluate.h"
#include "hone/graph/import_onnx.h"
#include "hone/graph/reference_testing.h"

namespace hone::graph {

struct TestModel::Proto {
  OnnxWriter writer;
};

TestModel::TestModel(int opset)
    : proto_(std::make_unique<Proto>(Proto{OnnxWriter("test", opset)})) {}

TestModel::TestModel(TestModel&&) noexcept = default;
TestModel::~TestModel() = default;

TestModel& TestModel::input(const std::string& name, const Shape& shape, DType dtype) {
  proto_->writer.input(name, shape, dtype);
  return *this;
}

TestModel& TestModel::open_input(const std::string& name, const std::vector<std::string>& shape) {
  auto* value = proto_->writer.proto().mutable_graph()->add_input();
  value->set_name(name);
  auto* type = value->mutable_type()->mutable_tensor_type();
  type->set_elem_type(1);
  for (const std::string& extent : shape) {
    auto* dim = type->mutable_shape()->add_dim();
    if (std::isdigit(static_cast<unsigned char>(extent[0]))) {
      dim->set_dim_value(std::stoll(extent));
    } else {
      dim->set_dim_param(extent);
    }
  }
  return *this;
}

TestModel& TestModel::constant(const std::string& name, const Tensor& tensor) {
  proto_->writer.constant(name, tensor);
  return *this;
}

TestModel& TestModel::external(const std::string& name, const Shape& shape,
                               const std::string& location, int64_t offset, int64_t length) {
  auto* to = proto_->writer.proto().mutable_graph()->add_initializer();
  to->set_name(name);
  to->set_data_type(1);
  for (const int64_t extent : shape) to->add_dims(extent);
  to->set_data_location(onnx::TensorProto::EXTERNAL);
  const auto entry = [&](const char* key, const std::string& value) {
    auto* e = to->add_external_data();
    e->set_key(key);
    e->set_value(value);
  };
  entry("location", location);
  if (offset >= 0) entry("offset", std::to_string(offset));
  if (length >= 0) entry("length", std::to_string(length));
  return *this;
}

TestModel& TestModel::node(const std::string& type, const std::vector<std::string>& inputs,
                           const std::vector<std::string>& outputs, const AttributeList& attributes,
                           const std::string& domain) {
  proto_->writer.node(type, inputs, outputs, attributes, domain);
  return *this;
}

TestModel& TestModel::output(const std::string& name) {
  proto_->writer.proto().mutable_graph()->add_output()->set_name(name);
  return *this;
}

TestModel& TestModel::text(const std::string& fields) {
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(fields, &proto_->writer.proto()));
  return *this;
}

std::string TestModel::bytes() const { return proto_->writer.bytes(); }

Result<Graph> TestModel::import() const {
  const std::string data = bytes();
  return import_onnx_bytes(data.data(), data.size(), "test.onnx", "");
}

Graph TestModel::graph() const {
  Result<Graph> graph = import();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? std::move(graph).value() : Graph{};
}

Tensor random_tensor(const Shape& shape, Rng& rng, double low, double high) {
  Tensor tensor(DType::kF32, shape);
  for (float& x : tensor.as<float>()) x = static_cast<float>(low + (high - low) * rng.uniform());
  return tensor;
}

Tensor ints(const std::vector<int64_t>& values) {
  Tensor tensor(DType::kI64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<int64_t>().begin());
  return tensor;
}

Tensor floats(const Shape& shape, const std::vector<float>& values) {
  Tensor tensor(DType::kF32, shape);
  HONE_ASSERT(static_cast<size_t>(tensor.size()) == values.size(), "one value per element");
  std::copy(values.begin(), values.end(), tensor.as<float>().begin());
  return tensor;
}

double relative_error(const Tensor& actual, const Tensor& expected) {
  if (actual.shape() != expected.shape() || actual.dtype() != expected.dtype()) return HUGE_VAL;
  double largest = 1e-6, error = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected.at(i)));
    const double difference = std::abs(actual.at(i) - expected.at(i));
    error = std::isnan(difference) ? HUGE_VAL : std::max(error, difference);
  }
  return error / largest;
}

std::vector<Tensor> run_plainly(const Graph& model, const std::vector<Tensor>& inputs) {
  Graph graph = model;
  for (size_t i = 0; i < inputs.size(); ++i) graph.value(graph.inputs[i]).constant = inputs[i];
  for (const Node& node : graph.nodes) {
    const bool moves = node.op->emit == nullptr;
    auto results = moves ? node.op->fold(graph, node) : evaluate_node(graph, node);
    EXPECT_TRUE(results.ok()) << results.status().message();
    if (!results.ok()) return {};
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNoValue) graph.value(node.outputs[i]).constant = (*results)[i];
    }
  }
  std::vector<Tensor> outputs;
  for (const ValueId id : graph.outputs) outputs.push_back(*graph.value(id).constant);
  return outputs;
}

std::vector<Tensor> run_optimized(const Graph& graph, const std::vector<Tensor>& inputs,
                                  const std::vector<std::string>& skip_passes) {
  auto outputs = run_reference(graph, inputs, skip_passes);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  return outputs.ok() ? std::move(outputs).value() : std::vector<Tensor>{};
}

}  // namespace hone::graph
