// learn/torch/interpreter.h - runs a net in libtorch, with gradients.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "hone/base/rng.h"
#include "hone/cost/net/torch_api.h"
#include "hone/learn/torch/place.h"
#include "hone/learn/torch/row_reader.h"

namespace hone::learn::torch_module {

struct Outputs {
  // [rows]; undefined if the net does not have it.
  at::Tensor score, time, memory_bound, core_bound;
};
inline constexpr at::Tensor Outputs::*kOutputs[] = {&Outputs::score, &Outputs::time,
                                                    &Outputs::memory_bound, &Outputs::core_bound};

// Copies the parameters to that place. Those that are not frozen have gradients.
[[nodiscard]] std::vector<at::Tensor> make_parameters(const HoneTorchNet& net, const Place& place);

class Interpreter {
 public:
  Interpreter(const HoneTorchNet& net, const Place& place);

  // Runs the net. `rows` may be anywhere, `parameters` must be in the place and of its type.
  // Dropout draws from `dropped`; there is none if it is null. Several threads may run, unless the
  // place is generic.
  [[nodiscard]] Outputs run(const RowInputs& rows, const std::vector<at::Tensor>& parameters,
                            Rng* dropped) const;

 private:
  const HoneTorchNet& net_;
  Place place_;
  std::vector<at::Tensor> constants_;
};

}  // namespace hone::learn::torch_module
