// verify.h - checks whether a compiled model is right, and if it is not, at which nodes it goes
// wrong. Every tensor that its tasks compute is compared with a naive run of the model as imported,
// or with given tensors.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hone/artifact/loaded_model.h"
#include "hone/commands/verify_tasks.h"
#include "hone/session/compile_options.h"

namespace hone {

struct VerifyOptions {
  CompileOptions compile;
  // Returns values for the model's inputs, in its order.
  std::function<Result<std::vector<Tensor>>(const std::vector<artifact::ModelTensor>&)> make_inputs;
  // The expected tensors, by the names that the model gives them. If it is null, a naive run
  // computes them.
  const std::vector<NamedTensor>* reference = nullptr;
  // The largest allowed difference, relative to the largest magnitude of the tensor. If it is
  // negative, it is 1e-3, or more if the narrowest type in the model needs it. Integers must be
  // equal; those of 8 bits may differ by 1.
  double tolerance = -1;
};

[[nodiscard]] Result<VerifyReport> verify(const std::string& model, const VerifyOptions& options);
[[nodiscard]] Result<VerifyReport> verify(graph::Graph model, const VerifyOptions& options);

}  // namespace hone
