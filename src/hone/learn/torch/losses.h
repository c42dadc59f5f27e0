// learn/torch/losses.h - the losses that training minimises. A batch has groups of rows side by
// side, each of one task; only rows of one group are compared.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "hone/learn/torch/interpreter.h"

namespace hone::learn::torch_module {

struct Labels {
  at::Tensor speed, log_time, memory_bound, core_bound;  // [rows]
  std::vector<int64_t> group_sizes;
};

// Returns the mean over the rows.
[[nodiscard]] at::Tensor loss_of(const Outputs& outputs, const Labels& labels,
                                 const HoneTorchOptions& options);

}  // namespace hone::learn::torch_module
