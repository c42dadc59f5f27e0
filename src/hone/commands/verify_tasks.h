// verify_tasks.h - runs the tasks of an assembled model one by one, and compares each tensor that
// they compute with the expected one (internal).
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "hone/commands/check/compare.h"
#include "hone/graph/graph.h"
#include "hone/tensor/npy.h"

namespace hone {

struct Assembly;
struct ModelTasks;

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
};

// Compares with a naive run of the model as imported, before its passes.
[[nodiscard]] Result<VerifyReport> verify_tasks(const graph::Graph& imported,
                                                const ModelTasks& model, const Assembly& assembly,
                                                const std::vector<Tensor>& inputs, double tolerance,
                                                const std::atomic<bool>* interrupted);
// Compares with given tensors, by the names that the model gives them.
[[nodiscard]] Result<VerifyReport> verify_tasks(const std::vector<NamedTensor>& reference,
                                                const ModelTasks& model, const Assembly& assembly,
                                                const std::vector<Tensor>& inputs,
                                                double tolerance);

}  // namespace hone
