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

// Compares with a naive run of the model as imported, before its passes. The inputs are those of a
// naive run (check/sized_values.h).
[[nodiscard]] Result<VerifyReport> verify_tasks(const graph::Graph& imported,
                                                const ModelTasks& model, const Assembly& assembly,
                                                const std::vector<Tensor>& inputs, double tolerance,
                                                const std::atomic<bool>* interrupted);
// Likewise at one of the sizes of a model whose inputs vary, with a naive run of `reference`, which
// is the model imported for that size alone, on `dense`, the inputs as a library takes them. Values
// of which it is not known how they vary are not compared.
[[nodiscard]] Result<VerifyReport> verify_tasks(const graph::Graph& imported,
                                                const graph::Graph& reference,
                                                const ModelTasks& model, const Assembly& assembly,
                                                const std::vector<Tensor>& inputs,
                                                const std::vector<Tensor>& dense, double tolerance,
                                                const std::atomic<bool>* interrupted);
// Compares with given tensors, by the names that the model gives them.
[[nodiscard]] Result<VerifyReport> verify_tasks(const std::vector<NamedTensor>& reference,
                                                const ModelTasks& model, const Assembly& assembly,
                                                const std::vector<Tensor>& inputs,
                                                double tolerance);

}  // namespace hone
