// artifact/model_body.h - the interface behind a hone::Model: a library that this process has
// loaded (loaded_model.h), or one on a machine elsewhere (remote/remote_model.h).
#pragma once

#include "hone/model.h"

namespace hone {

// Its functions do what those of hone::Model with their names say.
class ModelBody {
 public:
  virtual ~ModelBody() = default;
  ModelBody(const ModelBody&) = delete;
  ModelBody& operator=(const ModelBody&) = delete;

  [[nodiscard]] const std::vector<ModelTensor>& inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<ModelTensor>& outputs() const { return outputs_; }
  // The index is that of an input or output, and the shape not the one that never varies.
  [[nodiscard]] virtual Status set_input_shape(int input, const Shape& shape) = 0;
  [[nodiscard]] virtual Result<Shape> input_shape(int input) const = 0;
  [[nodiscard]] virtual Result<Shape> output_shape(int output) const = 0;
  // Runs the model up to `most` times; there are as many arrays as inputs and outputs. `times`, to
  // which those of the runs are added, may be null for one run.
  [[nodiscard]] virtual Status run(std::span<const void* const> inputs,
                                   std::span<void* const> outputs, int most,
                                   std::vector<RunTime>* times) = 0;
  [[nodiscard]] virtual std::string device() const = 0;
  [[nodiscard]] virtual int64_t device_bytes() const = 0;
  virtual void profile(bool enable) = 0;
  [[nodiscard]] virtual std::vector<StepTime> step_times() const = 0;
  [[nodiscard]] virtual Status trace(bool enable) = 0;
  [[nodiscard]] virtual std::vector<ThreadWork> thread_work() const = 0;

 protected:
  ModelBody() = default;
  std::vector<ModelTensor> inputs_, outputs_;
};

}  // namespace hone
