// graph/test_model.h - builds small ONNX models for tests, as the contents of a file.
#pragma once

#include <memory>

#include "hone/base/rng.h"
#include "hone/graph/graph.h"
#include "hone/graph/onnx_writer.h"

namespace hone::graph {

class TestModel {
 public:
  explicit TestModel(int opset = 17);
  TestModel(TestModel&&) noexcept;
  ~TestModel();
  TestModel& input(const std::string& name, const Shape& shape, DType dtype = DType::kF32);
  // Adds an input whose extents are texts; those that are no numbers are symbolic.
  TestModel& open_input(const std::string& name, const std::vector<std::string>& shape);
  TestModel& constant(const std::string& name, const Tensor& tensor);
  // Adds a constant whose data is in another file. A negative offset or length is not written.
  TestModel& external(const std::string& name, const Shape& shape, const std::string& location,
                      int64_t offset = -1, int64_t length = -1);
  // Adds a node. Its name is that of its first output with "node_" before it.
  TestModel& node(const std::string& type, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs, const AttributeList& attributes = {},
                  const std::string& domain = "");
  TestModel& output(const std::string& name);
  // Adds fields of onnx.ModelProto in protobuf's text format: functions, nodes with graphs inside.
  // It fails the test if the text has other fields.
  TestModel& text(const std::string& fields);
  [[nodiscard]] std::string bytes() const;
  // Imports the model. An error fails the test.
  [[nodiscard]] Graph graph() const;
  [[nodiscard]] Result<Graph> import() const;

 private:
  struct Proto;
  std::unique_ptr<Proto> proto_;
};

[[nodiscard]] Tensor random_tensor(const Shape& shape, Rng& rng, double low = -1, double high = 1);
[[nodiscard]] Tensor ints(const std::vector<int64_t>& values);
[[nodiscard]] Tensor floats(const Shape& shape, const std::vector<float>& values);
// Returns the largest difference relative to the largest magnitude in `expected`; infinite if
// shapes differ.
[[nodiscard]] double relative_error(const Tensor& actual, const Tensor& expected);
// Runs every node alone, in plain order, without passes. This is the oracle of everything but the
// operators.
[[nodiscard]] std::vector<Tensor> run_plainly(const Graph& graph,
                                              const std::vector<Tensor>& inputs);
// Runs the graph after all passes, fusion and the memory plan. An error fails the test.
[[nodiscard]] std::vector<Tensor> run_optimized(const Graph& graph,
                                                const std::vector<Tensor>& inputs,
                                                const std::vector<std::string>& skip_passes = {});

}  // namespace hone::graph
