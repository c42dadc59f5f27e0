// learn/torch/optimizer.h - AdamW (Loshchilov and Hutter 2019) with a running mean of the
// parameters. Both can be saved as bytes, so that a training that is resumed continues as if it had
// never stopped.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "hone/cost/net/torch_api.h"
#include "hone/learn/torch/place.h"
#include "hone/learn/torch/workers.h"

namespace hone::learn::torch_module {

class Optimizer {
 public:
  // The constants of one step; all are factors except `epsilon`.
  struct Step {
    float gradient, first, second, rate, correction2, epsilon, shrink;
  };

  // The parameters, which are in that place, are changed; those without gradients stay.
  Optimizer(std::vector<at::Tensor> parameters, const Place& place,
            const HoneTorchOptions& options);

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
  // Returns the norm of all gradients together.
  [[nodiscard]] double gradient_norm(Workers& workers) const;
  // Updates the parameter with index `place`; `kept` is the share of the running mean that is kept.
  void apply(const Step& step, float kept, size_t place);

  Place place_;
  std::vector<at::Tensor> parameters_, first_, second_, mean_;
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
