// verify.h - is a compiled model right, and if not, from which node on? Every tensor that its tasks
// compute is compared with a naive run of the model as imported, or with tensors from elsewhere.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hone/codegen/loaded_model.h"
#include "hone/commands/verify_tasks.h"
#include "hone/session/compile_options.h"

namespace hone {

struct VerifyOptions {
  CompileOptions compile;
  // Values for the model's inputs, in its order.
  std::function<Result<std::vector<Tensor>>(const std::vector<codegen::ModelTensor>&)> make_inputs;
  // Tensors by the names that the model gives them; null: a naive run makes them.
  const std::vector<NamedTensor>* reference = nullptr;
  // Largest difference, relative to the largest magnitude of the tensor. Negative: 1e-3, or what
  // the narrowest type in the model allows. Integers must be equal, but for 1 in those of 8 bits.
  double tolerance = -1;
};

[[nodiscard]] Result<VerifyReport> verify(const std::string& model, const VerifyOptions& options);
[[nodiscard]] Result<VerifyReport> verify(graph::Graph model, const VerifyOptions& options);

}  // namespace hone
