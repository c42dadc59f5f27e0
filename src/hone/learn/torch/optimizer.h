// learn/torch/optimizer.h - libtorch's AdamW (Loshchilov and Hutter 2019) and clipping of
// gradients, with a running mean of the parameters. All can be saved as bytes, so that a training
// that is resumed continues as if it had never stopped.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "hone/cost/net/torch_api.h"
#include "hone/learn/torch/workers.h"

namespace torch::optim {
class AdamW;
}

namespace hone::learn::torch_module {

class Optimizer {
 public:
  // The parameters are changed; those without gradients stay.
  Optimizer(std::vector<at::Tensor> parameters, const HoneTorchOptions& options);
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  ~Optimizer();

  // Applies the gradients and clears them.
  void step(double rate, Workers& workers);
  // Returns what is judged and kept: the running mean if one is wanted, else the parameters.
  [[nodiscard]] const std::vector<at::Tensor>& result() const {
    return options_.average > 0 ? mean_ : parameters_;
  }
  void write(std::string& bytes) const;
  // Returns false if there are too few bytes. What was read is removed from `bytes`.
  [[nodiscard]] bool read(std::string_view& bytes);

 private:
  // Moves the parameter with index `place` and its running mean, of which the share `kept` is kept.
  void apply(size_t place, double rate, double kept);

  std::vector<at::Tensor> parameters_, mean_;
  // One for each parameter, so that threads share the work.
  std::vector<std::unique_ptr<torch::optim::AdamW>> adam_;
  const HoneTorchOptions& options_;
  int64_t steps_ = 0;
};

void write_tensors(const std::vector<at::Tensor>& tensors, std::string& bytes);
[[nodiscard]] bool read_tensors(const std::vector<at::Tensor>& tensors, std::string_view& bytes);
template <typename T>
void write_plain(const T& value, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <typename T>
[[nodiscard]] bool read_plain(T& value, std::string_view& bytes) {
  if (bytes.size() < sizeof value) return false;
  std::copy_n(bytes.data(), sizeof value, reinterpret_cast<char*>(&value));
  bytes.remove_prefix(sizeof value);
  return true;
}

}  // namespace hone::learn::torch_module
