// verify.h - is a compiled model right, and if not, from which node on? Every tensor that its tasks
// compute is compared with a naive run of the model as imported, or with tensors from elsewhere.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "hone/tensor/npy.h"
#include "hone/tune.h"

namespace hone {

struct Assembly;
struct ModelTasks;

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

struct VerifyReport {
  double tolerance = 0;
  int tasks = 0;
  int compared = 0;                  // tensors
  int unknown = 0;                   // tensors of tasks that the reference does not have
  std::vector<std::string> missing;  // of a given reference: what the compiled model does not have
  double worst_error = 0;            // of all tensors within the tolerance
  std::string worst_value;
  std::vector<Divergence> divergences;  // in the order in which the model computes them
};

[[nodiscard]] Result<VerifyReport> verify(const std::string& model, const VerifyOptions& options);
[[nodiscard]] Result<VerifyReport> verify(graph::Graph model, const VerifyOptions& options);

// What verify() does with a model that is assembled already; `imported`: it before its passes.
[[nodiscard]] Result<VerifyReport> verify_tasks(const graph::Graph& imported,
                                                const ModelTasks& model, const Assembly& assembly,
                                                const std::vector<Tensor>& inputs, double tolerance,
                                                const std::atomic<bool>* interrupted);

// Compares one tensor; nullopt if it is right: `error` is then its largest relative error.
[[nodiscard]] std::optional<Divergence> compare(const Tensor& found, const Tensor& expected,
                                                double tolerance, double& error);

}  // namespace hone
