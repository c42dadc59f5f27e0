// learn/torch/inner_loop.h - adapts parameters to a few schedules of a task by gradient descent,
// and differentiates what comes of it by the parameters that it starts from: MAML (Finn, Abbeel and
// Levine 2017, section 2.2), its first-order form (section 5.2), and Reptile (Nichol, Achiam and
// Schulman 2018). The parameters are values, so that a net that is evaluated with adapted ones has
// the gradients of all steps.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <vector>

namespace hone::learn::torch_module {

struct InnerLoop {
  int steps = 1;
  double rate = 2e-3;
  // If true, derivatives of the adapted parameters know how the gradients of the steps change with
  // the parameters; if false, these gradients count as constants.
  bool second_order = true;
};

// Returns a loss, a number, with these values of the parameters. `pass` counts the calls, so that
// each can draw other values to drop.
using LossOf = std::function<at::Tensor(const std::vector<at::Tensor>& parameters, int pass)>;

// Returns the parameters after `steps` steps against the gradient of `loss`. Those that have no
// gradients stay. Throws c10::Error if a second derivative is wanted that an operator does not
// have.
[[nodiscard]] std::vector<at::Tensor> adapt(const std::vector<at::Tensor>& parameters,
                                            const LossOf& loss, const InnerLoop& loop);

struct MetaGradient {
  double loss = 0;                     // after the adaptation
  std::vector<at::Tensor> parameters;  // undefined for parameters that have no gradients
};
// Returns the loss `query` of the parameters adapted to `support`, with its gradient with respect
// to the parameters before the adaptation.
[[nodiscard]] MetaGradient maml_gradient(const std::vector<at::Tensor>& parameters,
                                         const LossOf& support, const LossOf& query,
                                         const InnerLoop& loop);
// Returns Reptile's direction: (parameters - adapted parameters) / (steps * rate), the mean
// gradient of the steps. The loss is that of `all` with the adapted parameters.
[[nodiscard]] MetaGradient reptile_gradient(const std::vector<at::Tensor>& parameters,
                                            const LossOf& all, const InnerLoop& loop);

}  // namespace hone::learn::torch_module
