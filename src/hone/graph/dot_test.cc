#include "hone/graph/dot.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "hone/graph/passes/pass.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

struct Drawn {
  Graph graph;
  TaskList tasks;
  std::string text;
};

Drawn draw(TestModel& model) {
  Drawn drawn;
  drawn.graph = model.graph();
  EXPECT_TRUE(optimize(drawn.graph).ok());
  auto tasks = extract_tasks(drawn.graph);
  EXPECT_TRUE(tasks.ok()) << tasks.status().message();
  drawn.tasks = std::move(tasks).value();
  drawn.text = to_dot(drawn.graph, drawn.tasks);
  return drawn;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(dot, puts_the_nodes_of_a_task_into_one_box) {
  Rng rng(1);
  TestModel model;
  model.input("x", {1, 4, 6, 6}).constant("w", random_tensor({4, 4, 3, 3}, rng));
  model.node("Conv", {"x", "w"}, {"c"}).node("Relu", {"c"}, {"r"});
  model.node("MaxPool", {"r"}, {"y"}, {{"kernel_shape", Shape{2, 2}}}).output("y");
  const Drawn drawn = draw(model);
  EXPECT_EQ(count(drawn.text, "subgraph cluster_"), drawn.tasks.calls.size());
  const size_t box = drawn.text.find("label=\"conv2d+relu\"");
  ASSERT_NE(box, std::string::npos) << drawn.text;
  const std::string inside = drawn.text.substr(box, drawn.text.find('}', box) - box);
  EXPECT_EQ(count(inside, "label=\"Conv\""), 1U) << inside;
  EXPECT_EQ(count(inside, "label=\"Relu\""), 1U) << inside;
  EXPECT_EQ(count(inside, "label=\"MaxPool\""), 0U) << inside;
}

TEST(dot, draws_every_node_and_every_edge_but_constants) {
  TestModel model;
  model.input("x", {2, 6}).constant("shape", ints({3, 4}));
  model.node("Relu", {"x"}, {"r"}).node("Reshape", {"r", "shape"}, {"v"});
  model.node("Add", {"v", "v"}, {"y"}).output("y");
  const Drawn drawn = draw(model);
  size_t edges = drawn.graph.outputs.size();
  for (const Node& node : drawn.graph.nodes) {
    for (const ValueId in : node.inputs) edges += drawn.graph.value(in).constant ? 0 : 1;
  }
  EXPECT_EQ(count(drawn.text, " -> "), edges) << drawn.text;
  EXPECT_EQ(count(drawn.text, "tooltip="), drawn.graph.nodes.size()) << drawn.text;
  EXPECT_EQ(count(drawn.text, "style=dashed"), 1U) << drawn.text;  // the view
  EXPECT_EQ(count(drawn.text, "[2, 6]"), 2U) << drawn.text;        // x and r
}

TEST(dot, names_cannot_end_a_string) {
  TestModel model;
  model.input("evil\"\\", {4}).node("Relu", {"evil\"\\"}, {"y"}).output("y");
  EXPECT_NE(draw(model).text.find("[label=\"evil\\\"\\\\\", shape=ellipse]"), std::string::npos);
}

}  // namespace
}  // namespace hone::graph
