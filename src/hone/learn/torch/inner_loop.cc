#include "hone/learn/torch/inner_loop.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

namespace hone::learn::torch_module {
namespace {

using torch::autograd::variable_list;

// The parameters that have gradients, and their places.
struct Trained {
  variable_list parameters;
  std::vector<size_t> places;

  explicit Trained(const std::vector<at::Tensor>& all) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (!all[i].requires_grad()) continue;
      parameters.push_back(all[i]);
      places.push_back(i);
    }
  }
};

// Undefined for parameters that the loss does not depend on.
variable_list gradients_of(const at::Tensor& loss, const Trained& trained, bool differentiable) {
  return torch::autograd::grad({loss}, trained.parameters, {}, /*retain_graph=*/differentiable,
                               /*create_graph=*/differentiable, /*allow_unused=*/true);
}

// One step against the gradients.
std::vector<at::Tensor> moved(std::vector<at::Tensor> parameters, const Trained& trained,
                              const variable_list& gradients, const InnerLoop& loop) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    const at::Tensor& gradient = gradients[i];
    if (!gradient.defined()) continue;
    // A gradient that nothing was recorded of would have derivatives of 0.
    TORCH_CHECK(!loop.second_order || gradient.requires_grad(), "the gradient of parameter ",
                trained.places[i],
                " has no derivative: expected first-order meta-learning, or none");
    at::Tensor& parameter = parameters[trained.places[i]];
    parameter = parameter - loop.rate * gradient;
  }
  return parameters;
}

}  // namespace

std::vector<at::Tensor> adapt(const std::vector<at::Tensor>& parameters, const LossOf& loss,
                              const InnerLoop& loop) {
  std::vector<at::Tensor> adapted = parameters;
  for (int step = 0; step < loop.steps; ++step) {
    const Trained trained(adapted);
    const variable_list slope = gradients_of(loss(adapted, step), trained, loop.second_order);
    adapted = moved(std::move(adapted), trained, slope, loop);
  }
  return adapted;
}

MetaGradient maml_gradient(const std::vector<at::Tensor>& parameters, const LossOf& support,
                           const LossOf& query, const InnerLoop& loop) {
  const at::Tensor loss = query(adapt(parameters, support, loop), loop.steps);
  const Trained trained(parameters);
  MetaGradient result{loss.item<double>(), std::vector<at::Tensor>(parameters.size())};
  const variable_list slope = gradients_of(loss, trained, false);
  for (size_t i = 0; i < slope.size(); ++i) result.parameters[trained.places[i]] = slope[i];
  return result;
}

MetaGradient reptile_gradient(const std::vector<at::Tensor>& parameters, const LossOf& all,
                              const InnerLoop& loop) {
  const std::vector<at::Tensor> adapted = adapt(parameters, all, {loop.steps, loop.rate, false});
  const c10::NoGradGuard no_gradients;
  MetaGradient result{all(adapted, loop.steps).item<double>(),
                      std::vector<at::Tensor>(parameters.size())};
  for (const size_t place : Trained(parameters).places)
    result.parameters[place] = (parameters[place] - adapted[place]) / (loop.steps * loop.rate);
  return result;
}

}  // namespace hone::learn::torch_module
