// compare.h - finds out how one tensor of a model differs from the expected one (internal).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hone/tensor/tensor.h"

namespace hone {

// A tensor that differs from the expected one by more than the tolerance.
struct Divergence {
  std::string value;       // name of the tensor
  std::string node, type;  // node that computes it, such as "conv1" and "Conv"
  // The class of the task; empty for a view and for what was computed at compile time.
  std::string kernel_class;
  int group = -1;                  // index of the task in TaskList::groups; -1 if there is no task
  std::vector<std::string> fused;  // names of the task's nodes
  std::string problem;             // why the tensors cannot be compared; empty if they can
  Shape index;                     // position of the worst element
  double found = 0, expected = 0;  // values of the worst element
  // The error of the worst element, relative to the largest magnitude; it may be infinite.
  double error = 0;
  int64_t wrong = 0, elements = 0;  // number of elements beyond the tolerance, and of all elements
};

// Compares one tensor. Returns nothing if it is right; `error` is then its largest relative error.
[[nodiscard]] std::optional<Divergence> compare(const Tensor& found, const Tensor& expected,
                                                double tolerance, double& error);

}  // namespace hone
