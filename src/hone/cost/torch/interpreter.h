// cost/torch/interpreter.h - runs a net in libtorch, with gradients.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "hone/cost/torch/api.h"

namespace hone::cost::torch_module {

struct Outputs {
  at::Tensor score, time, memory_bound, core_bound;  // [rows]; undefined where the net has none
};

class Interpreter {
 public:
  explicit Interpreter(const HoneTorchNet& net);

  // `inputs`: per input of the net [rows, ...]. `training`: values are dropped.
  [[nodiscard]] Outputs run(const std::vector<at::Tensor>& inputs,
                            const std::vector<at::Tensor>& parameters, bool training) const;
  // Copies; those that are not frozen want gradients.
  [[nodiscard]] std::vector<at::Tensor> parameters() const;
  // The rows of an input as a tensor over the caller's memory.
  [[nodiscard]] std::vector<at::Tensor> wrap(const float* const* inputs, int64_t rows) const;

 private:
  const HoneTorchNet& net_;
  std::vector<at::Tensor> constants_;
};

}  // namespace hone::cost::torch_module
