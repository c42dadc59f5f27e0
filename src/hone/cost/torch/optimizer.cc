#include "hone/cost/torch/optimizer.h"

#include <algorithm>
#include <cmath>

namespace hone::cost::torch_module {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

std::vector<at::Tensor> zeros_like(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> zeros;
  for (const at::Tensor& tensor : tensors) zeros.push_back(at::zeros(tensor.sizes(), at::kFloat));
  return zeros;
}

}  // namespace

void write_tensors(const std::vector<at::Tensor>& tensors, std::string& bytes) {
  for (const at::Tensor& tensor : tensors)
    bytes.append(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
}

bool read_tensors(const std::vector<at::Tensor>& tensors, std::string_view& bytes) {
  for (const at::Tensor& tensor : tensors) {
    if (bytes.size() < tensor.nbytes()) return false;
    std::copy_n(bytes.data(), tensor.nbytes(), static_cast<char*>(tensor.data_ptr()));
    bytes.remove_prefix(tensor.nbytes());
  }
  return true;
}

Optimizer::Optimizer(std::vector<at::Tensor> parameters, const HoneTorchOptions& options)
    : parameters_(std::move(parameters)),
      first_(zeros_like(parameters_)),
      second_(zeros_like(parameters_)),
      options_(options) {
  if (options.average <= 0) return;
  for (const at::Tensor& parameter : parameters_) mean_.push_back(parameter.detach().clone());
}

double Optimizer::gradient_scale() const {
  if (options_.clip <= 0) return 1;
  double square = 0;
  for (const at::Tensor& parameter : parameters_) {
    if (parameter.grad().defined()) {
      const double norm = parameter.grad().norm().item<double>();
      square += norm * norm;
    }
  }
  return std::min(1.0, options_.clip / (std::sqrt(square) + 1e-6));
}

void Optimizer::step(double rate) {
  const at::NoGradGuard no_gradients;
  const double scale = gradient_scale();
  ++steps_;
  const auto count = static_cast<double>(steps_);
  const double correction1 = 1 - std::pow(kBeta1, count);
  const double correction2 = 1 - std::pow(kBeta2, count);
  // A mean over few steps is over those alone.
  const double kept = std::min(options_.average, count / (count + 10));
  for (size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& parameter = parameters_[i];
    if (!parameter.grad().defined()) continue;
    const at::Tensor gradient = parameter.grad() * scale;
    first_[i].mul_(kBeta1).add_(gradient, 1 - kBeta1);
    second_[i].mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
    if (parameter.dim() > 1) parameter.mul_(1 - rate * options_.decay);
    const at::Tensor scaled = (second_[i] / correction2).sqrt_().add_(kEpsilon);
    parameter.addcdiv_(first_[i], scaled, -rate / correction1);
    parameter.mutable_grad().reset();
    if (!mean_.empty()) mean_[i].mul_(kept).add_(parameter, 1 - kept);
  }
}

void Optimizer::write(std::string& bytes) const {
  write_plain(steps_, bytes);
  for (const auto* tensors : {&parameters_, &first_, &second_, &mean_})
    write_tensors(*tensors, bytes);
}

bool Optimizer::read(std::string_view& bytes) {
  const at::NoGradGuard no_gradients;
  return read_plain(steps_, bytes) && read_tensors(parameters_, bytes) &&
         read_tensors(first_, bytes) && read_tensors(second_, bytes) && read_tensors(mean_, bytes);
}

}  // namespace hone::cost::torch_module
