// artifact/loaded_model.h - loads an artifact into this process and runs it. The file is inspected
// first: only a sound artifact of this interface version is loaded, so no code of any other library
// runs.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hone/base/status.h"
#include "hone/tensor/tensor.h"

namespace hone::artifact {

struct ModelTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;  // the largest shape, for an output whose shape depends on data
};

struct StepTime {
  std::string name;
  std::string kernel_class;
  int kernel = 0;  // steps with equal numbers run the same code
  double seconds = 0;
  double flops = 0;
  // Limits of the task, which are 0 in older libraries: the FLOPs of the algorithm that needs the
  // fewest, and the bytes that are read and written, each counted once.
  double least_flops = 0, bytes = 0;
};

class LoadedModel {
 public:
  // Opens a library. num_threads = 0 means all cores that this process may use.
  [[nodiscard]] static Result<LoadedModel> open(const std::string& path, int num_threads = 0);
  LoadedModel(LoadedModel&&) noexcept;
  LoadedModel& operator=(LoadedModel&&) noexcept;
  ~LoadedModel();

  [[nodiscard]] const std::vector<ModelTensor>& inputs() const;
  [[nodiscard]] const std::vector<ModelTensor>& outputs() const;
  // Runs the model on dense row-major arrays in the order of inputs() and outputs(). Calls must not
  // overlap.
  [[nodiscard]] Status run(std::span<const void* const> inputs, std::span<void* const> outputs);
  // Runs the model and checks shapes and types. The outputs have their actual shapes.
  [[nodiscard]] Result<std::vector<Tensor>> run(std::span<const Tensor> inputs);
  [[nodiscard]] Result<Shape> output_shape(int output) const;  // shape in the last run

  // While this is enabled, each run records the times of its steps, which are zero before the first
  // such run.
  void profile(bool enable);
  [[nodiscard]] std::vector<StepTime> step_times() const;

 private:
  struct State;
  explicit LoadedModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hone::artifact
