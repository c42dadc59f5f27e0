// compare.h - how one tensor of a model differs from what it should be (internal to the facade).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hone/tensor/tensor.h"

namespace hone {

// A tensor that is not what it should be.
struct Divergence {
  std::string value;                // its name
  std::string node, type;           // what makes it: "conv1", "Conv"
  std::string kernel_class;         // of the task; empty if the compiler computed it
  int group = -1;                   // of TaskList::groups, likewise
  std::vector<std::string> fused;   // the task's nodes
  std::string problem;              // if the tensors cannot be compared: why
  Shape index;                      // of the worst element
  double found = 0, expected = 0;   // there
  double error = 0;                 // there, relative to the largest magnitude; may be infinite
  int64_t wrong = 0, elements = 0;  // beyond the tolerance, of so many
};

// Compares one tensor; nullopt if it is right: `error` is then its largest relative error.
[[nodiscard]] std::optional<Divergence> compare(const Tensor& found, const Tensor& expected,
                                                double tolerance, double& error);

}  // namespace hone
