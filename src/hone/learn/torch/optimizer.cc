#include "hone/learn/torch/optimizer.h"

#include <c10/core/GradMode.h>
#include <torch/nn/init.h>  // for clip_grad.h, which does not include the types it names
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <type_traits>
#include <utility>

namespace hone::learn::torch_module {
namespace {

using torch::optim::AdamW;
using torch::optim::AdamWOptions;
using torch::optim::AdamWParamState;
using States = std::decay_t<decltype(std::declval<AdamW>().state())>;

// Returns a parameter's key among the states: its address, or in older releases the text of it.
template <typename Key = States::key_type>
Key key_of(const at::Tensor& parameter) {
  if constexpr (std::is_pointer_v<Key>) {
    return parameter.unsafeGetTensorImpl();
  } else {
    std::ostringstream text;
    text << parameter.unsafeGetTensorImpl();
    return text.str();
  }
}

// Returns the moments of a parameter's gradients, which are 0 before the first step.
std::array<at::Tensor, 2> moments_of(AdamW& adam, const at::Tensor& parameter) {
  const auto found = adam.state().find(key_of(parameter));
  if (found == adam.state().end()) return {at::zeros_like(parameter), at::zeros_like(parameter)};
  const auto& state = static_cast<const AdamWParamState&>(*found->second);
  return {state.exp_avg(), state.exp_avg_sq()};
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

Optimizer::Optimizer(std::vector<at::Tensor> parameters, const HoneTorchOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  for (const at::Tensor& parameter : parameters_) {
    // Vectors, such as biases, do not decay.
    const double decay = parameter.dim() > 1 ? options.decay : 0;
    adam_.push_back(std::make_unique<AdamW>(std::vector{parameter},
                                            AdamWOptions(options.rate).weight_decay(decay)));
    if (options.average > 0) mean_.push_back(parameter.detach().clone());
  }
}

Optimizer::~Optimizer() = default;

void Optimizer::step(double rate, Workers& workers) {
  if (options_.clip > 0) torch::nn::utils::clip_grad_norm_(parameters_, options_.clip, 2.0, true);
  const auto count = static_cast<double>(++steps_);
  // A mean over few steps is over those alone.
  const double kept = std::min(options_.average, count / (count + 10));
  workers.for_each(std::ssize(parameters_), [&](int64_t i) {
    const auto place = static_cast<size_t>(i);
    if (parameters_[place].grad().defined()) apply(place, rate, kept);
  });
}

void Optimizer::apply(size_t place, double rate, double kept) {
  const c10::NoGradGuard no_gradients;
  at::Tensor& parameter = parameters_[place];
  auto& options = adam_[place]->param_groups().front().options();
  static_cast<AdamWOptions&>(options).lr(rate);
  adam_[place]->step();
  if (!mean_.empty()) mean_[place].mul_(kept).add_(parameter, 1 - kept);
  parameter.mutable_grad().reset();
}

void Optimizer::write(std::string& bytes) const {
  std::vector<at::Tensor> first, second;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto moments = moments_of(*adam_[i], parameters_[i]);
    first.push_back(moments[0]), second.push_back(moments[1]);
  }
  write_plain(steps_, bytes);
  write_tensors(parameters_, bytes);
  write_tensors(first, bytes);
  write_tensors(second, bytes);
  write_tensors(mean_, bytes);
}

bool Optimizer::read(std::string_view& bytes) {
  const c10::NoGradGuard no_gradients;
  std::vector<at::Tensor> first, second;
  for (const at::Tensor& parameter : parameters_)
    first.push_back(at::zeros_like(parameter)), second.push_back(at::zeros_like(parameter));
  const bool whole = read_plain(steps_, bytes) && read_tensors(parameters_, bytes) &&
                     read_tensors(first, bytes) && read_tensors(second, bytes) &&
                     read_tensors(mean_, bytes);
  if (!whole) return false;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    auto state = std::make_unique<AdamWParamState>();
    state->step(steps_);
    state->exp_avg(first[i]);
    state->exp_avg_sq(second[i]);
    adam_[i]->state()[key_of(parameters_[i])] = std::move(state);
  }
  return true;
}

}  // namespace hone::learn::torch_module
