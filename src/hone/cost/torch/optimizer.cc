#include "hone/cost/torch/optimizer.h"

#include <algorithm>
#include <cmath>

#include "hone/cost/torch/vectorised.h"

namespace hone::cost::torch_module {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

std::vector<at::Tensor> zeros_like(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> zeros;
  for (const at::Tensor& tensor : tensors) zeros.push_back(at::zeros(tensor.sizes(), at::kFloat));
  return zeros;
}

// Of one step; all are factors but `epsilon`.
struct Step {
  float gradient, first, second, rate, correction2, epsilon, shrink;
};

// Everything at once: each number is read and written once.
HONE_VECTORISED void update(const Step& step, int64_t count, const float* gradient, float* first,
                            float* second, float* parameter) {
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

double Optimizer::gradient_scale(Workers& workers) const {
  if (options_.clip <= 0) return 1;
  std::vector<double> norms(parameters_.size());
  workers.for_each(std::ssize(parameters_), [&](int64_t i) {
    const auto place = static_cast<size_t>(i);
    if (parameters_[place].grad().defined())
      norms[place] = parameters_[place].grad().norm().item<double>();
  });
  double square = 0;
  for (const double norm : norms) square += norm * norm;
  return std::min(1.0, options_.clip / (std::sqrt(square) + 1e-6));
}

void Optimizer::step(double rate, Workers& workers) {
  const double scale = gradient_scale(workers);
  ++steps_;
  const auto count = static_cast<double>(steps_);
  const double correction1 = 1 - std::pow(kBeta1, count);
  const double correction2 = 1 - std::pow(kBeta2, count);
  // A mean over few steps is over those alone.
  const double kept = std::min(options_.average, count / (count + 10));
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
    const at::Tensor gradient = parameter.grad().contiguous();
    Step step = plain;
    if (parameter.dim() > 1) step.shrink = static_cast<float>(1 - rate * options_.decay);
    update(step, parameter.numel(), gradient.data_ptr<float>(), first_[place].data_ptr<float>(),
           second_[place].data_ptr<float>(), parameter.data_ptr<float>());
    parameter.mutable_grad().reset();
    if (!mean_.empty())
      move_mean(static_cast<float>(kept), parameter.numel(), parameter.data_ptr<float>(),
                mean_[place].data_ptr<float>());
  });
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
