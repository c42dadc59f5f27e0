// Graphs of thousands of nodes, of kinds on which one step per pair of nodes, or one frame of the
// stack per node, would show: as a test that takes hours, or as a crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "hone/graph/memory_plan.h"
#include "hone/graph/node_names.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/passes/pass_testing.h"
#include "hone/graph/tasks.h"

namespace hone::graph {
namespace {

constexpr int kMany = 20'000;

std::string name(int i) { return "x" + std::to_string(i); }

// x -> operator -> ... -> y, kMany times; `operand`: the second one, if any.
TestModel chain(const char* type, const char* operand = nullptr) {
  TestModel model;
  model.input(name(0), {2, 2}).constant("c", floats({}, {2.0F}));
  for (int i = 0; i < kMany; ++i) {
    std::vector<std::string> inputs = {name(i)};
    if (operand != nullptr) inputs.emplace_back(operand);
    model.node(type, inputs, {name(i + 1)});
  }
  model.output(name(kMany));
  return model;
}

std::set<std::string> names(const Graph& graph) {
  std::set<std::string> found;
  for (const Node& node : graph.nodes) found.insert(node.name);
  return found;
}

TEST(node_names, differ_whatever_is_wanted) {
  NodeNames names;
  EXPECT_EQ(names.take("a"), "a");
  EXPECT_EQ(names.take("a.2"), "a.2");
  EXPECT_EQ(names.take("a"), "a.1");
  EXPECT_EQ(names.take("a"), "a.3");
  EXPECT_EQ(names.take("a.2"), "a.2.1");
  names.release("a.1");
  EXPECT_EQ(names.take("a"), "a.1");
  EXPECT_EQ(names.take("a"), "a.4");
  names.release("a");
  EXPECT_EQ(names.take("a"), "a");
  EXPECT_EQ(names.take("a", NodeNames::Suffix::kSigns), "a#");
  EXPECT_EQ(names.take("a", NodeNames::Suffix::kSigns), "a##");
}

TEST(node_names, of_a_name_that_recurs_stay_short) {
  NodeNames names;
  std::set<std::string> taken;
  size_t longest = 0;
  for (int i = 0; i < 100'000; ++i) {
    taken.insert(names.take("loop/add", NodeNames::Suffix::kSigns));
    longest = std::max(longest, taken.rbegin()->size());
  }
  EXPECT_EQ(taken.size(), 100'000u);
  EXPECT_LE(longest, 8 + NodeNames::kMostSigns);
}

TEST(large_graph, chains_of_products_are_no_pattern) {
  for (const char* type : {"Mul", "Add", "Sub"}) {
    Graph graph = chain(type, "x0").graph();
    ASSERT_TRUE(recognize_patterns(graph).ok());
    EXPECT_EQ(graph.nodes.size(), static_cast<size_t>(kMany)) << type;
  }
}

TEST(large_graph, each_node_of_a_chain_is_replaced) {
  Graph graph = chain("Div", "c").graph();
  const std::set<std::string> before = names(graph);
  ASSERT_TRUE(simplify_algebra(graph).ok());
  remove_dead_nodes(graph);
  ASSERT_TRUE(verify(graph).ok());
  // Divisions by 2 become products, and their constants meet as long as they are not 0.
  EXPECT_EQ(count(graph, "Mul"), std::ssize(graph.nodes));
  EXPECT_LT(graph.nodes.size(), static_cast<size_t>(kMany) / 100);
  for (const Node& node : graph.nodes) EXPECT_EQ(before.count(node.name), 1u) << node.name;
}

TEST(large_graph, chains_of_views_become_one) {
  TestModel model;
  model.input(name(0), {4, 6}).constant("s0", ints({6, 4})).constant("s1", ints({2, 12}));
  for (int i = 0; i < kMany; ++i)
    model.node("Reshape", {name(i), i % 2 == 0 ? "s0" : "s1"}, {name(i + 1)});
  Graph graph = model.node("Exp", {name(kMany)}, {"y"}).output("y").graph();
  ASSERT_TRUE(simplify_algebra(graph).ok());
  remove_dead_nodes(graph);
  EXPECT_EQ(types(graph), (std::vector<std::string>{"Reshape", "Exp"}));
}

// Nodes that read the same with different attributes, and constants that differ in their last bytes
// only; of each there are two.
TEST(large_graph, alike_but_not_the_same) {
  TestModel model;
  model.input("x", {2, 2});
  for (int i = 0; i < kMany; ++i) {
    const float alpha = 0.25F + static_cast<float>(i / 2) / kMany;
    model.node("LeakyRelu", {"x"}, {name(i)}, {{"alpha", alpha}}).output(name(i));
  }
  for (int i = 0; i < kMany; ++i) {
    std::vector<float> values(30, 1);
    values.back() = static_cast<float>(i / 2);
    const std::string constant = "c" + std::to_string(i);
    model.constant(constant, floats({30}, values)).input("z" + std::to_string(i), {30});
    model.node("Add", {"z" + std::to_string(i), constant}, {"s" + std::to_string(i)});
    model.output("s" + std::to_string(i));
  }
  Graph graph = model.graph();
  ASSERT_TRUE(eliminate_common_subexpressions(graph).ok());
  EXPECT_EQ(count(graph, "LeakyRelu"), kMany / 2);
  std::set<ValueId> constants;
  for (const Node& node : graph.nodes) {
    if (node.type == "Add") constants.insert(node.inputs[1]);
  }
  EXPECT_EQ(constants.size(), static_cast<size_t>(kMany / 2));
}

// A copy for every output, which all are one value.
TEST(large_graph, results_that_are_one_value) {
  TestModel model;
  model.input("x", {2, 2}).node("Relu", {"x"}, {"r"});
  for (int i = 0; i < kMany; ++i) model.node("Identity", {"r"}, {name(i)}).output(name(i));
  Graph graph = model.graph();
  ASSERT_TRUE(optimize(graph).ok());
  EXPECT_EQ(count(graph, "hone.Copy"), kMany - 1);
  EXPECT_EQ(names(graph).size(), static_cast<size_t>(kMany));
  const auto tasks = extract_tasks(graph);
  ASSERT_TRUE(tasks.ok()) << tasks.status().message();
  EXPECT_EQ(tasks->calls.size(), static_cast<size_t>(kMany));
  EXPECT_EQ(tasks->groups.size(), 2u);
}

// Every part is a copy of the input, which no concatenation can take as it is.
TEST(large_graph, a_concatenation_of_many_parts) {
  TestModel model;
  model.input("x", {2, 2});
  Graph graph =
      model.node("Concat", std::vector<std::string>(kMany, "x"), {"y"}, {{"axis", int64_t{0}}})
          .output("y")
          .graph();
  ASSERT_TRUE(optimize(graph).ok());
  EXPECT_EQ(count(graph, "hone.Copy"), kMany);
  EXPECT_EQ(names(graph).size(), static_cast<size_t>(kMany) + 1);
}

// Each part lies in the next concatenation, which lies in the next.
TEST(large_graph, concatenations_in_concatenations) {
  constexpr int kDeep = 5'000;
  TestModel model;
  model.input("x", {1, 1}).node("Relu", {"x"}, {name(0)});
  for (int i = 0; i < kDeep; ++i)
    model.node("Concat", {name(i), "x"}, {name(i + 1)}, {{"axis", int64_t{0}}});
  Graph graph = model.output(name(kDeep)).graph();
  ASSERT_TRUE(optimize(graph).ok());
  EXPECT_EQ(graph.buffers.size(), 2u);
  const Value& first = graph.value(graph.nodes[0].outputs[0]);
  EXPECT_EQ(graph.buffers[static_cast<size_t>(first.storage.buffer)].kind, Buffer::Kind::kOutput);
}

// The border that the convolution at the end wants goes through the whole chain to its beginning.
TEST(large_graph, a_border_at_the_end_of_a_chain) {
  constexpr int kDeep = 5'000;
  Rng rng(7);
  TestModel model;
  model.input("x", {1, 2, 4, 4}).constant("w", random_tensor({2, 2, 3, 3}, rng));
  model.node("Conv", {"x", "w"}, {name(0)}, {{"pads", Shape{1, 1, 1, 1}}});
  for (int i = 0; i < kDeep; ++i) model.node("Sigmoid", {name(i)}, {name(i + 1)});
  model.node("Conv", {name(kDeep), "w"}, {"y"}, {{"pads", Shape{1, 1, 1, 1}}});
  Graph graph = model.output("y").graph();
  ASSERT_TRUE(optimize(graph).ok());
  for (const Node& node : graph.nodes) {
    if (node.type != "Sigmoid") continue;
    ASSERT_EQ(graph.value(node.outputs[0]).storage.border_low, (Shape{0, 0, 1, 1})) << node.name;
  }
}

// The work of folding is limited in all: nodes with constant operands stay when the limit is
// reached.
TEST(large_graph, folds_no_more_than_a_bound) {
  TestModel model;
  model.input("x", {2}).input("a", {2}).input("b", {2});
  model.node("Exp", {"a"}, {"e"}).node("Mul", {"e", "b"}, {"m"}).node("Add", {"x", "m"}, {"y"});
  model.output("y");
  const auto kept = [&](const std::function<void(Graph&)>& use_up) {
    Graph graph = model.graph();
    // Constants from here on: small ones are folded by the import.
    for (const size_t i : {1, 2}) graph.value(graph.inputs[i]).constant = floats({2}, {1, 2});
    graph.weight_bytes = 16;
    use_up(graph);
    EXPECT_TRUE(fold_constants(graph).ok());
    return types(graph);
  };
  using Types = std::vector<std::string>;
  EXPECT_EQ(kept([](Graph&) {}), Types{"Add"});
  EXPECT_EQ(kept([](Graph& g) { g.folded_bytes = kMaxFoldedBytes + 4 * 16 - 8; }),
            (Types{"Mul", "Add"}))
      << "room for one of 8 bytes: the model's weights have 16";
  EXPECT_EQ(kept([](Graph& g) { g.folded_operations = kMaxFoldedOperations; }),
            (Types{"Exp", "Mul", "Add"}));
}

TEST(large_graph, counts_the_operations_of_folding) {
  TestModel model;
  Graph graph = model.input("a", {1000}).node("Exp", {"a"}, {"y"}).output("y").graph();
  graph.value(graph.inputs[0]).constant = floats({1000}, std::vector<float>(1000, 1.0F));
  const int64_t before = graph.folded_operations;
  ASSERT_TRUE(fold_constants(graph).ok());
  EXPECT_TRUE(graph.nodes.empty());
  EXPECT_GT(graph.folded_operations, before + 1000);
  EXPECT_LT(graph.folded_operations, before + 100'000);
}

TEST(large_graph, a_rank_has_a_bound) {
  for (const size_t rank : {64, 65, 20'000}) {
    TestModel model;
    model.input("x", Shape(rank, 1)).node("Relu", {"x"}, {"y"}).output("y");
    const Result<Graph> graph = model.import();
    EXPECT_EQ(graph.ok(), rank == 64) << rank;
    if (graph.ok()) continue;
    EXPECT_LT(graph.status().message().size(), 200u);
    EXPECT_NE(graph.status().message().find("at most 64"), std::string::npos)
        << graph.status().message();
  }
  TestModel model;
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < 100; ++i) axes.push_back(i);
  model.input("x", {}).constant("axes", ints(axes));
  const Result<Graph> graph = model.node("Unsqueeze", {"x", "axes"}, {"y"}).output("y").import();
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("'node_y' (Unsqueeze): a result of 100 dimensions"),
            std::string::npos)
      << graph.status().message();
}

TEST(large_graph, a_transposed_convolution_has_a_bound_of_phases) {
  TestModel model;
  model.input("x", {1, 1, 2, 2}).constant("w", floats({1, 1, 1, 1}, {1}));
  model.node("ConvTranspose", {"x", "w"}, {"y"}, {{"strides", Shape{10'000, 10'000}}});
  const Result<Graph> graph = model.output("y").import();
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("at most 4096"), std::string::npos)
      << graph.status().message();
}

// More buffers than the plan compares with each other: a plan all the same, and a tight one.
TEST(large_graph, buffers_of_a_long_chain_take_turns) {
  TaskList tasks;
  constexpr int kBuffers = 9'000;
  for (int i = 0; i < kBuffers; ++i) {
    const int64_t border = i % 3 == 0 ? 1 : 0;
    tasks.buffers.push_back({.shape = {64 + i % 7 + 2 * border}, .border = {border, border}});
    TaskCall call;
    if (i > 0) call.arguments.push_back({Argument::Kind::kArena, i - 1});
    if (i % 100 == 99) call.arguments.push_back({Argument::Kind::kArena, i - 99});
    call.arguments.push_back({Argument::Kind::kArena, i});
    tasks.calls.push_back(std::move(call));
  }
  const MemoryPlan plan = plan_memory(tasks);
  const Status status = verify(plan, tasks);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_LT(plan.arena_bytes, 64 * 512);
}

}  // namespace
}  // namespace hone::graph
