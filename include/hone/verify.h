// verify.h - checks whether a compiled model is right, and if it is not, at which nodes it goes
// wrong. Every tensor that its tasks compute is compared with a naive run of the model as imported,
// or with given tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hone/export.h"
#include "hone/model.h"
#include "hone/npy.h"
#include "hone/options.h"
#include "hone/status.h"
#include "hone/tensor.h"

namespace hone {

struct VerifyOptions {
  CompileOptions compile;
  // Returns values for the model's inputs, in its order. If it is empty, they are random.
  std::function<Result<std::vector<Tensor>>(const std::vector<ModelTensor>&)> make_inputs;
  // The expected tensors, by the names that the model gives them. If it is null, a naive run
  // computes them.
  const std::vector<NamedTensor>* reference = nullptr;
  // The largest allowed difference, relative to the largest magnitude of the tensor. If it is
  // negative, it is 1e-3, or more if the narrowest type in the model or the accuracy "fast" needs
  // it. Integers must be equal; those of 8 bits may differ by 1.
  double tolerance = -1;
};

// A tensor that differs from the expected one by more than the tolerance.
struct Divergence {
  std::string value;       // name of the tensor
  std::string node, type;  // node that computes it, such as "conv1" and "Conv"
  // The class of the task; empty for a view and for what was computed at compile time.
  std::string kernel_class;
  int group = -1;                  // index of the task in Inspection::distinct; -1 if there is none
  std::vector<std::string> fused;  // names of the task's nodes
  std::string problem;             // why the tensors cannot be compared; empty if they can
  Shape index;                     // position of the worst element
  double found = 0, expected = 0;  // values of the worst element
  // The error of the worst element, relative to the largest magnitude; it may be infinite.
  double error = 0;
  int64_t wrong = 0, elements = 0;  // number of elements beyond the tolerance, and of all elements
  std::string size;  // the sizes of the run, such as "batch=2, seq=7"; empty if none varies
};

struct VerifyReport {
  double tolerance = 0;
  int tasks = 0;
  int compared = 0;  // number of tensors
  int unknown = 0;   // number of tasks for whose tensors there is no reference
  // The names in a given reference that are no tensors of the compiled model.
  std::vector<std::string> missing;
  double worst_error = 0;  // largest error of the tensors within the tolerance
  std::string worst_value;
  std::vector<Divergence> divergences;  // in the order in which the model computes them
  // If the shapes of the inputs vary: the sizes at which all was compared, the largest first.
  std::vector<std::string> sizes;
};

// Verifies the model at the path `model`, without writing its library. If the shapes of its inputs
// vary, the largest, the smallest and some others are tried. A naive run takes far longer
// than a compiled one: minutes for a large network. Differences are no error, but in the report.
[[nodiscard]] HONE_API Result<VerifyReport> verify(const std::string& model,
                                                   const VerifyOptions& options = {});

}  // namespace hone
