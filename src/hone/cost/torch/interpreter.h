// cost/torch/interpreter.h - runs a net in libtorch, with gradients.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "hone/base/rng.h"
#include "hone/cost/torch/api.h"
#include "hone/cost/torch/place.h"
#include "hone/cost/torch/row_reader.h"

namespace hone::cost::torch_module {

struct Outputs {
  at::Tensor score, time, memory_bound, core_bound;  // [rows]; undefined where the net has none
};
inline constexpr at::Tensor Outputs::*kOutputs[] = {&Outputs::score, &Outputs::time,
                                                    &Outputs::memory_bound, &Outputs::core_bound};

// Copies, in that place; those that are not frozen want gradients.
[[nodiscard]] std::vector<at::Tensor> make_parameters(const HoneTorchNet& net, const Place& place);

class Interpreter {
 public:
  Interpreter(const HoneTorchNet& net, const Place& place);

  // `rows` may be anywhere, `parameters` are in the place. `dropped`: what is dropped is drawn from
  // it; null: nothing is. Several threads may run, unless the place is generic.
  [[nodiscard]] Outputs run(const RowInputs& rows, const std::vector<at::Tensor>& parameters,
                            Rng* dropped) const;

 private:
  const HoneTorchNet& net_;
  Place place_;
  std::vector<at::Tensor> constants_;
};

}  // namespace hone::cost::torch_module
