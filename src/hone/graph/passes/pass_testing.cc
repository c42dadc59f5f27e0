#include "hone/graph/passes/pass_testing.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hone::graph {

std::vector<std::string> types(const Graph& graph) {
  std::vector<std::string> list;
  for (const Node& node : graph.nodes) list.push_back(node.type);
  return list;
}

int64_t count(const Graph& graph, const std::string& type) {
  const auto list = types(graph);
  return std::count(list.begin(), list.end(), type);
}

// Runs one pass, cleans up, and requires the same result as before.
Graph run_pass(const Graph& before, Status (*pass)(Graph&), const std::vector<Tensor>& inputs,
               double tolerance) {
  Graph after = before;
  const Status status = pass(after);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(sort_nodes(after).ok());
  remove_dead_nodes(after);
  EXPECT_TRUE(verify(after).ok()) << verify(after).message();
  const auto expected = run_plainly(before, inputs), actual = run_plainly(after, inputs);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_LT(relative_error(actual[i], expected[i]), tolerance);
  return after;
}

}  // namespace hone::graph
