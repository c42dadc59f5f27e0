#include "hone/learn/torch/optimizer.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "hone/learn/torch/vectorised.h"

namespace hone::learn::torch_module {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

std::vector<at::Tensor> zeros_like(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> zeros;
  for (const at::Tensor& tensor : tensors)
    zeros.push_back(at::zeros(tensor.sizes(), tensor.options()));
  return zeros;
}

// Everything at once: each number is read and written once.
HONE_VECTORISED void update(const Optimizer::Step& step, int64_t count, const float* gradient,
                            float* first, float* second, float* parameter) {
  for (int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] * step.gradient;
    first[i] = step.first * first[i] + (1 - step.first) * g;
    second[i] = step.second * second[i] + (1 - step.second) * g * g;
    const float scaled = std::sqrt(second[i] * step.correction2) + step.epsilon;
    parameter[i] = parameter[i] * step.shrink - step.rate * first[i] / scaled;
  }
}

HONE_VECTORISED void move_mean(float kept, int64_t count, const float* parameter, float* mean) {
  for (int64_t i = 0; i < count; ++i) mean[i] = kept * mean[i] + (1 - kept) * parameter[i];
}

// The same, tensor by tensor, by operators of libtorch.
void update(const Optimizer::Step& step, const at::Tensor& gradient, const at::Tensor& first,
            const at::Tensor& second, const at::Tensor& parameter) {
  const at::Tensor g = gradient * step.gradient;
  first.mul_(step.first).add_(g, 1 - step.first);
  second.mul_(step.second).addcmul_(g, g, 1 - step.second);
  const at::Tensor scaled = (second * step.correction2).sqrt_().add_(step.epsilon);
  parameter.mul_(step.shrink).addcdiv_(first, scaled, -step.rate);
}

void move_mean(float kept, const at::Tensor& parameter, const at::Tensor& mean) {
  mean.mul_(kept).add_(parameter, 1 - kept);
}

}  // namespace

void write_tensors(const std::vector<at::Tensor>& tensors, std::string& bytes) {
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor here = tensor.to(at::kCPU);
    bytes.append(static_cast<const char*>(here.data_ptr()), here.nbytes());
  }
}

bool read_tensors(const std::vector<at::Tensor>& tensors, std::string_view& bytes) {
  for (const at::Tensor& tensor : tensors) {
    if (bytes.size() < tensor.nbytes()) return false;
    const at::Tensor here = at::empty(tensor.sizes(), at::kFloat);
    std::copy_n(bytes.data(), here.nbytes(), static_cast<char*>(here.data_ptr()));
    tensor.copy_(here);
    bytes.remove_prefix(tensor.nbytes());
  }
  return true;
}

Optimizer::Optimizer(std::vector<at::Tensor> parameters, const Place& place,
                     const HoneTorchOptions& options)
    : place_(place),
      parameters_(std::move(parameters)),
      first_(zeros_like(parameters_)),
      second_(zeros_like(parameters_)),
      options_(options) {
  if (options.average <= 0) return;
  for (const at::Tensor& parameter : parameters_) mean_.push_back(parameter.detach().clone());
}

double Optimizer::gradient_norm(Workers& workers) const {
  std::vector<at::Tensor> norms(parameters_.size());
  workers.for_each(std::ssize(parameters_), [&](int64_t i) {
    const auto place = static_cast<size_t>(i);
    const at::Tensor& gradient = parameters_[place].grad();
    norms[place] = gradient.defined() ? gradient.norm() : at::zeros({}, place_.floats());
  });
  return at::stack(norms).to(at::kDouble).norm().item<double>();
}

void Optimizer::step(double rate, Workers& workers) {
  const double scale =
      options_.clip > 0 ? std::min(1.0, options_.clip / (gradient_norm(workers) + 1e-6)) : 1;
  ++steps_;
  const auto count = static_cast<double>(steps_);
  const double correction1 = 1 - std::pow(kBeta1, count);
  const double correction2 = 1 - std::pow(kBeta2, count);
  // A mean over few steps is over those alone.
  const auto kept = static_cast<float>(std::min(options_.average, count / (count + 10)));
  const Step plain = {static_cast<float>(scale),
                      static_cast<float>(kBeta1),
                      static_cast<float>(kBeta2),
                      static_cast<float>(rate / correction1),
                      static_cast<float>(1 / correction2),
                      static_cast<float>(kEpsilon),
                      1};
  workers.for_each(std::ssize(parameters_), [&](int64_t i) {
    const auto place = static_cast<size_t>(i);
    at::Tensor& parameter = parameters_[place];
    if (!parameter.grad().defined()) return;
    Step step = plain;
    if (parameter.dim() > 1) step.shrink = static_cast<float>(1 - rate * options_.decay);
    apply(step, kept, place);
    parameter.mutable_grad().reset();
  });
}

void Optimizer::apply(const Step& step, float kept, size_t place) {
  const c10::NoGradGuard no_gradients;
  const at::Tensor& parameter = parameters_[place];
  const at::Tensor gradient = parameter.grad().contiguous();
  if (place_.generic) {
    update(step, gradient, first_[place], second_[place], parameter);
    if (!mean_.empty()) move_mean(kept, parameter, mean_[place]);
    return;
  }
  update(step, parameter.numel(), gradient.data_ptr<float>(), first_[place].data_ptr<float>(),
         second_[place].data_ptr<float>(), parameter.data_ptr<float>());
  if (!mean_.empty())
    move_mean(kept, parameter.numel(), parameter.data_ptr<float>(), mean_[place].data_ptr<float>());
}

void Optimizer::write(std::string& bytes) const {
  write_plain(steps_, bytes);
  for (const auto* tensors : {&parameters_, &first_, &second_, &mean_})
    write_tensors(*tensors, bytes);
}

bool Optimizer::read(std::string_view& bytes) {
  const c10::NoGradGuard no_gradients;
  return read_plain(steps_, bytes) && read_tensors(parameters_, bytes) &&
         read_tensors(first_, bytes) && read_tensors(second_, bytes) && read_tensors(mean_, bytes);
}

}  // namespace hone::learn::torch_module
