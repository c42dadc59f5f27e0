// graph/passes/pass_testing.h - helpers that the tests of passes share.
#pragma once

#include "hone/graph/passes/pass.h"
#include "hone/graph/test_model.h"

namespace hone::graph {

// Returns the types of the nodes in order.
[[nodiscard]] std::vector<std::string> types(const Graph& graph);
// Returns how many nodes have a type.
[[nodiscard]] int64_t count(const Graph& graph, const std::string& type);

// Runs one pass, cleans up, and requires the same result as before.
[[nodiscard]] Graph run_pass(const Graph& before, Status (*pass)(Graph&),
                             const std::vector<Tensor>& inputs, double tolerance = 1e-5);

}  // namespace hone::graph
