#include <gtest/gtest.h>

#include <cmath>

#include "hone/graph/op.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/passes/pass_testing.h"
#include "hone/graph/test_model.h"
#include "hone/graph/widen_nodes.h"

namespace hone::graph {
namespace {

struct Net {
  const char* type;
  int64_t gates;
  AttributeList attributes;
};

// Five steps of a batch of two, in both directions; a clip that cuts nothing off makes the operator
// take the gates one by one.
Graph recurrent(const Net& net, bool one_by_one, bool bias, Rng& rng) {
  constexpr int64_t kHidden = 7, kInputs = 3;
  TestModel model;
  model.input("x", {5, 2, kInputs});
  model.constant("w", random_tensor({2, net.gates * kHidden, kInputs}, rng));
  model.constant("r", random_tensor({2, net.gates * kHidden, kHidden}, rng));
  if (bias) model.constant("b", random_tensor({2, 2 * net.gates * kHidden}, rng));
  AttributeList attributes = net.attributes;
  attributes.push_back({"hidden_size", kHidden});
  attributes.push_back({"direction", std::string("bidirectional")});
  if (one_by_one) attributes.push_back({"clip", 1e6F});
  model.node(net.type, {"x", "w", "r", bias ? "b" : ""}, {"y", "last"}, attributes);
  return model.output("y").output("last").graph();
}

TEST(rnn, states_in_one_kernel_are_those_of_gates_one_by_one) {
  const Net nets[] = {{"LSTM", 4, {}}, {"GRU", 3, {{"linear_before_reset", int64_t{1}}}}};
  for (const Net& net : nets) {
    for (const bool bias : {false, true}) {
      Rng rng(11), same(11), data(12);
      const Graph fused = recurrent(net, false, bias, rng),
                  plain = recurrent(net, true, bias, same);
      const std::string state = net.gates == 4 ? "hone.LstmState" : "hone.GruState";
      EXPECT_EQ(count(fused, state), 10);
      EXPECT_EQ(count(plain, state), 0);
      const std::vector<Tensor> inputs = {random_tensor({5, 2, 3}, data, -2, 2)};
      const auto expected = run_plainly(plain, inputs);
      const auto found = run_plainly(fused, inputs), optimized = run_optimized(fused, inputs);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_LT(relative_error(found[i], expected[i]), 1e-6) << net.type;
        EXPECT_LT(relative_error(optimized[i], expected[i]), 1e-6) << net.type;
      }
    }
  }
}

// Products with zeros are left out, but not those that an infinite weight makes no number.
TEST(rnn, first_steps_from_no_state_multiply_nothing) {
  for (const bool infinite : {false, true}) {
    Rng rng(14);
    TestModel model;
    Tensor weights = random_tensor({2, 12, 3}, rng);
    if (infinite) weights.set(0, INFINITY);
    model.input("x", {5, 2, 4})
        .constant("w", random_tensor({2, 12, 4}, rng))
        .constant("r", weights)
        .node("LSTM", {"x", "w", "r"}, {"y"},
              {{"hidden_size", int64_t{3}}, {"direction", std::string("bidirectional")}});
    // Two of all inputs, and those of the steps.
    EXPECT_EQ(count(model.output("y").graph(), "MatMul"), infinite ? 2 + 10 : 2 + 8);
  }
}

// Nodes of a recurrent net before shapes are inferred: Y, and the states behind the last step.
Graph not_inferred(const std::string& type, int64_t gates, int64_t layout, int64_t directions) {
  Rng rng(15);
  Graph graph;
  graph.opset = 20;
  graph.inputs = {graph.add_value("x", DType::kF32, layout == 0 ? Shape{5, 2, 3} : Shape{2, 5, 3})};
  Node net;
  net.name = net.type = type;
  net.op = find_op(type, graph.opset);
  net.attributes.set("hidden_size", int64_t{7});
  net.attributes.set("layout", layout);
  net.attributes.set("direction", std::string(directions == 2 ? "bidirectional" : "reverse"));
  net.inputs = {graph.inputs[0],
                graph.add_constant("w", random_tensor({directions, gates * 7, 3}, rng)),
                graph.add_constant("r", random_tensor({directions, gates * 7, 7}, rng))};
  for (const char* name : {"y", "h", "c"}) {
    if (type != "LSTM" && name[0] == 'c') continue;
    net.outputs.push_back(graph.add_value(name, DType::kF32, {}));
    graph.outputs.push_back(net.outputs.back());
    graph.output_names.emplace_back(name);
  }
  graph.nodes.push_back(std::move(net));
  return graph;
}

TEST(rnn, the_shapes_of_results_are_known_without_steps) {
  for (const auto& [type, gates] :
       {std::pair<std::string, int64_t>{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}}) {
    for (const int64_t layout : {0, 1}) {
      for (const int64_t directions : {1, 2}) {
        SCOPED_TRACE(fmt::format("{} {} {}", type, layout, directions));
        Graph steps = not_inferred(type, gates, layout, directions);
        const std::optional<Graph> raw = with_shapes_only(steps);
        ASSERT_TRUE(raw);
        Graph shapes = *raw;
        ASSERT_TRUE(infer_shapes(steps).ok());
        const Status status = infer_shapes(shapes);
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(shapes.nodes.size(), 1u);
        for (const ValueId id : shapes.outputs)
          EXPECT_EQ(shapes.value(id).shape, steps.value(id).shape) << shapes.value(id).name;
      }
    }
  }
  Graph none;
  EXPECT_FALSE(with_shapes_only(none).has_value());
}

TEST(rnn, other_activations_take_gates_one_by_one) {
  Rng rng(13);
  const Net net = {
      "LSTM", 4, {{"activations", std::vector<std::string>{"Sigmoid", "Relu", "Tanh"}}}};
  EXPECT_EQ(count(recurrent(net, false, true, rng), "hone.LstmCell"), 0);
}

}  // namespace
}  // namespace hone::graph
