#include <gtest/gtest.h>

#include <algorithm>

#include "hone/graph/passes/pass_testing.h"
#include "hone/tensor/half_tensor.h"

namespace hone::graph {
namespace {

using Types = std::vector<std::string>;
constexpr DType kHalves[] = {DType::kF16, DType::kBF16};

Tensor half(const Tensor& floats, DType dtype) { return *narrowed(floats, dtype, false); }

Tensor random_half(const Shape& shape, Rng& rng, DType dtype) {
  return half(random_tensor(shape, rng), dtype);
}

Status widen(Graph& graph) {
  HalfWeights weights;
  return widen_halves(graph, {}, weights);
}

const Value& value_named(const Graph& graph, const std::string& name) {
  const auto found = std::find_if(graph.values.begin(), graph.values.end(),
                                  [&](const Value& value) { return value.name == name; });
  EXPECT_NE(found, graph.values.end()) << name;
  return *found;
}

TEST(widen_halves, what_is_computed_between_inputs_and_results_is_float32) {
  Rng rng(1);
  for (const DType dtype : kHalves) {
    TestModel model;
    model.input("x", {4, 8}, dtype).constant("w", random_half({8, 8}, rng, dtype));
    model.constant("b", random_half({8}, rng, dtype));
    model.node("MatMul", {"x", "w"}, {"p"}).node("Add", {"p", "b"}, {"s"});
    model.node("Relu", {"s"}, {"r"}).node("MatMul", {"r", "w"}, {"y"}).output("y");
    const Graph graph = run_pass(model.graph(), widen, {random_half({4, 8}, rng, dtype)},
                                 dtype == DType::kF16 ? 2e-3 : 2e-2);
    EXPECT_EQ(types(graph), (Types{"Cast", "MatMul", "Add", "Relu", "MatMul", "Cast"}));
    EXPECT_EQ(graph.value(graph.inputs[0]).dtype, dtype);
    EXPECT_EQ(graph.value(graph.outputs[0]).dtype, dtype);
    for (const char* name : {"w", "b", "p", "s", "r"})
      EXPECT_EQ(value_named(graph, name).dtype, DType::kF32) << name;
  }
}

// What makes a result dense says how many elements it has, so no Cast may come behind it.
TEST(widen_halves, constants_with_a_shape_that_data_decide_keep_their_type) {
  for (const DType dtype : kHalves) {
    TestModel model;
    model.input("x", {6}, dtype).node("Unique", {"x"}, {"u"});
    model.node("RandomUniformLike", {"u"}, {"y"}, {{"seed", 1.0F}}).output("y");
    Graph graph = model.graph();
    ASSERT_TRUE(widen(graph).ok());
    EXPECT_EQ(types(graph).back(), "hone.Compact");
    EXPECT_EQ(value_named(graph, "y").dtype, dtype);
  }
}

TEST(widen_halves, nothing_changes_without_halves) {
  Rng rng(2);
  TestModel model;
  model.input("x", {4, 8}).constant("w", random_tensor({8, 8}, rng));
  model.node("MatMul", {"x", "w"}, {"y"}).output("y");
  Graph graph = model.graph();
  const std::string before = describe(graph);
  ASSERT_TRUE(widen(graph).ok());
  EXPECT_EQ(describe(graph), before);
}

TEST(widen_halves, devices_with_instructions_for_halves_keep_them) {
  TestModel model;
  model.input("x", {4, 8}, DType::kF16).node("Relu", {"x"}, {"y"}).output("y");
  Graph graph = model.graph();
  HalfWeights weights;
  ASSERT_TRUE(widen_halves(graph, {.widens_halves = false}, weights).ok());
  EXPECT_EQ(types(graph), Types{"Relu"});
}

// Keys of the past and new ones become a result: what was there is not converted.
TEST(widen_halves, what_only_moves_from_inputs_to_results_stays_half) {
  Rng rng(3);
  TestModel model;
  model.input("past", {1, 6, 8}, DType::kF16).input("x", {1, 2, 8}, DType::kF16);
  model.constant("w", random_half({8, 8}, rng, DType::kF16));
  model.node("MatMul", {"x", "w"}, {"new"});
  model.node("Concat", {"past", "new"}, {"present"}, {{"axis", int64_t{1}}}).output("present");
  model.node("Relu", {"present"}, {"y"}).output("y");
  const Graph graph = run_pass(
      model.graph(), widen,
      {random_half({1, 6, 8}, rng, DType::kF16), random_half({1, 2, 8}, rng, DType::kF16)}, 2e-3);
  EXPECT_EQ(types(graph), (Types{"Cast", "MatMul", "Cast", "Concat", "Cast", "Relu", "Cast"}));
  const auto concat = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                   [](const Node& node) { return node.type == "Concat"; });
  EXPECT_EQ(concat->inputs[0], graph.inputs[0]);
  EXPECT_EQ(concat->outputs[0], graph.outputs[0]);
}

TEST(widen_halves, a_cast_of_the_model_rounds_unless_it_is_of_shares) {
  Rng rng(4);
  TestModel model;
  model.input("x", {4, 8}).constant("w", random_half({8, 8}, rng, DType::kF16));
  const auto to = [](DType dtype) { return AttributeList{{"to", static_cast<int64_t>(dtype)}}; };
  model.node("Cast", {"x"}, {"h"}, to(DType::kF16)).node("MatMul", {"h", "w"}, {"p"});
  model.node("Cast", {"p"}, {"f"}, to(DType::kF32)).node("Softmax", {"f"}, {"s"});
  model.node("Cast", {"s"}, {"g"}, to(DType::kF16)).node("MatMul", {"g", "w"}, {"q"});
  model.node("Cast", {"q"}, {"y"}, to(DType::kF32)).output("y");
  const Graph graph = run_pass(model.graph(), widen, {random_tensor({4, 8}, rng)}, 2e-3);
  EXPECT_EQ(types(graph), (Types{"Cast", "Cast", "MatMul", "Softmax", "MatMul", "Cast"}));
}

TEST(widen_halves, bits_are_those_of_the_type) {
  Rng rng(5);
  TestModel model(26);
  model.input("x", {4, 8}, DType::kF16).node("Exp", {"x"}, {"e"});
  model.node("BitCast", {"e"}, {"y"}, {{"to", static_cast<int64_t>(DType::kU16)}}).output("y");
  const Graph graph = run_pass(model.graph(), widen, {random_half({4, 8}, rng, DType::kF16)}, 1e-9);
  EXPECT_EQ(types(graph), (Types{"Cast", "Exp", "Cast", "BitCast"}));
}

// What computes with an input has it in float32; what moves it or reads its bits, as it is given.
TEST(widen_halves, an_input_that_is_computed_with_keeps_its_half_form) {
  Rng rng(7);
  for (const DType dtype : kHalves) {
    const Tensor x = random_half({4, 8}, rng, dtype), x2 = random_half({4, 8}, rng, dtype);
    const auto expect_kept = [&](const std::string& type, const AttributeList& attributes) {
      TestModel model(26);
      model.input("x", {4, 8}, dtype).node("Relu", {"x"}, {"r"}).output("r");
      std::vector<std::string> operands = {"x"};
      if (type == "Concat") model.input(operands.emplace_back("x2"), {4, 8}, dtype);
      model.node(type, operands, {"y"}, attributes).output("y");
      std::vector<Tensor> inputs = {x};
      if (type == "Concat") inputs.push_back(x2);
      const Graph graph = run_pass(model.graph(), widen, inputs, 1e-9);
      const auto kept = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                     [&](const Node& node) { return node.type == type; });
      ASSERT_NE(kept, graph.nodes.end()) << type;
      EXPECT_EQ(kept->inputs[0], graph.inputs[0]) << type;
    };
    expect_kept("Transpose", {});
    expect_kept("Concat", {{"axis", int64_t{0}}});
    expect_kept("Identity", {});
    expect_kept("BitCast", {{"to", static_cast<int64_t>(DType::kU16)}});
  }
}

TEST(widen_halves, numbers_of_activations_stand_for_themselves) {
  TestModel model;
  model.input("x", {4, 8}, DType::kBF16)
      .constant("r", half(floats({1}, {1.41421356F}), DType::kBF16));
  model.constant("k", half(floats({1}, {1.40625F}), DType::kBF16));
  model.node("Div", {"x", "r"}, {"d"}).node("Mul", {"d", "k"}, {"y"}).output("y");
  Graph graph = model.graph();
  ASSERT_TRUE(widen(graph).ok());
  EXPECT_EQ(value_named(graph, "r").constant->at(0), static_cast<double>(1.41421356F));
  EXPECT_EQ(value_named(graph, "k").constant->at(0), 1.40625);
}

// A graph whose weights w are `w`, all in float32; and what narrow_weights makes of it.
DType narrowed_type(const Tensor& w, HalfWeights weights, const char* reader) {
  TestModel model;
  model.input("x", {4, w.shape()[0]}).constant("w", w);
  if (std::string(reader) == "Add") model.input("y", w.shape());
  model.node(reader, {std::string(reader) == "Add" ? "y" : "x", "w"}, {"z"}).output("z");
  Graph graph = model.graph();
  EXPECT_TRUE(narrow_weights(graph, {}, weights).ok());
  EXPECT_TRUE(verify(graph).ok());
  return value_named(graph, "w").dtype;
}

TEST(narrow_weights, large_weights_of_products_are_half_again) {
  Rng rng(6);
  const Tensor any = random_tensor({128, 128}, rng), small = random_tensor({16, 16}, rng);
  for (const DType dtype : kHalves) {
    const Tensor exact = widened(half(any, dtype));
    EXPECT_EQ(narrowed_type(exact, {dtype, false}, "MatMul"), dtype);
    EXPECT_EQ(narrowed_type(any, {dtype, true}, "MatMul"), dtype);
    EXPECT_EQ(narrowed_type(any, {dtype, false}, "MatMul"), DType::kF32);  // some were float32
    EXPECT_EQ(narrowed_type(widened(half(small, dtype)), {dtype, true}, "MatMul"), DType::kF32);
    EXPECT_EQ(narrowed_type(exact, {dtype, true}, "Add"), DType::kF32);
    EXPECT_EQ(narrowed_type(exact, {}, "MatMul"), DType::kF32);
  }
}

}  // namespace
}  // namespace hone::graph
