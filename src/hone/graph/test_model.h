// graph/test_model.h - builds small ONNX models for tests, as the bytes of a file.
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
  // Extents as text; what is no number is symbolic.
  TestModel& open_input(const std::string& name, const std::vector<std::string>& shape);
  TestModel& constant(const std::string& name, const Tensor& tensor);
  // A constant whose data is elsewhere; negative offset or length: not written.
  TestModel& external(const std::string& name, const Shape& shape, const std::string& location,
                      int64_t offset = -1, int64_t length = -1);
  // The node gets the name of its first output, with "node_" before it.
  TestModel& node(const std::string& type, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs, const AttributeList& attributes = {},
                  const std::string& domain = "");
  TestModel& output(const std::string& name);
  [[nodiscard]] std::string bytes() const;
  // Imported; fails the test if that is an error.
  [[nodiscard]] Graph graph() const;
  [[nodiscard]] Result<Graph> import() const;

 private:
  struct Proto;
  std::unique_ptr<Proto> proto_;
};

[[nodiscard]] Tensor random_tensor(const Shape& shape, Rng& rng, double low = -1, double high = 1);
[[nodiscard]] Tensor ints(const std::vector<int64_t>& values);
[[nodiscard]] Tensor floats(const Shape& shape, const std::vector<float>& values);
// Largest difference, relative to the largest magnitude in `expected`; infinite if shapes differ.
[[nodiscard]] double relative_error(const Tensor& actual, const Tensor& expected);
// Every node alone, in plain order, without passes: the oracle of everything but the operators.
[[nodiscard]] std::vector<Tensor> run_plainly(const Graph& graph,
                                              const std::vector<Tensor>& inputs);
// Through all passes, fusion and the memory plan; fails the test on an error.
[[nodiscard]] std::vector<Tensor> run_optimized(const Graph& graph,
                                                const std::vector<Tensor>& inputs,
                                                const std::vector<std::string>& skip_passes = {});

}  // namespace hone::graph
