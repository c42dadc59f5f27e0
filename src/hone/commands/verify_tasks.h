// verify_tasks.h - runs the tasks of an assembled model one by one, and compares each tensor that
// they compute with the expected one (internal).
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "hone/graph/graph.h"
#include "hone/tensor/npy.h"
#include "hone/verify.h"

namespace hone {

struct Assembly;
struct ModelTasks;

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
