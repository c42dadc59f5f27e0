// codegen/loaded_model.h - an artifact, loaded into this process and run.
// The file is inspected before the loader sees it: only a sound artifact of this interface version
// is loaded, so no code of any other library runs.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hone/base/status.h"
#include "hone/tensor/tensor.h"

namespace hone::codegen {

struct ModelTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;  // of an output whose shape depends on data: the largest
};

struct StepTime {
  std::string name;
  std::string kernel_class;
  int kernel = 0;  // steps with one number run the same code
  double seconds = 0;
  double flops = 0;
  // For the task's limits, 0 in older libraries: the FLOPs of the algorithm that needs the least,
  // and what is read and written, each once.
  double least_flops = 0, bytes = 0;
};

class LoadedModel {
 public:
  // num_threads: 0 = all cores that this process may use.
  [[nodiscard]] static Result<LoadedModel> open(const std::string& path, int num_threads = 0);
  LoadedModel(LoadedModel&&) noexcept;
  LoadedModel& operator=(LoadedModel&&) noexcept;
  ~LoadedModel();

  [[nodiscard]] const std::vector<ModelTensor>& inputs() const;
  [[nodiscard]] const std::vector<ModelTensor>& outputs() const;
  // Dense row-major arrays in the order of inputs() and outputs(). Not two at a time.
  [[nodiscard]] Status run(std::span<const void* const> inputs, std::span<void* const> outputs);
  // The same with checked shapes and types; the outputs have their actual shapes.
  [[nodiscard]] Result<std::vector<Tensor>> run(std::span<const Tensor> inputs);
  [[nodiscard]] Result<Shape> output_shape(int output) const;  // of the last run

  // While enabled, each run records the times of its steps; zeros before the first such run.
  void profile(bool enable);
  [[nodiscard]] std::vector<StepTime> step_times() const;

 private:
  struct State;
  explicit LoadedModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hone::codegen
