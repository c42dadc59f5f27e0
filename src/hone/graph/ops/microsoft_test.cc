// Operators of com.microsoft as the operators that they stand for. Their values are compared with
// ONNX Runtime in tests/microsoft_operators_test.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "hone/graph/passes/pass.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

const char* const kDomain = "com.microsoft";

void expect_error(const TestModel& model, Code code, const std::string& part) {
  const Status status = model.import().status();
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

void expect_same(const TestModel& model, const TestModel& plain,
                 const std::vector<Tensor>& inputs) {
  const auto found = run_plainly(model.graph(), inputs);
  const auto expected = run_plainly(plain.graph(), inputs);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_LT(relative_error(found[i], expected[i]), 1e-5) << i;
}

int64_t count(const Graph& graph, const std::string& type) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const Node& node) { return node.type == type; });
}

TEST(microsoft, attention_becomes_what_passes_recognize) {
  for (const bool causal : {false, true}) {
    Rng rng(7);
    TestModel model(17);
    model.input("x", {2, 3, 8}).input("mask", {2, 3}, DType::kI32);
    model.constant("w", random_tensor({8, 24}, rng)).constant("b", random_tensor({24}, rng));
    model
        .node("Attention", {"x", "w", "b", "mask"}, {"y"},
              {{"num_heads", int64_t{2}}, {"unidirectional", int64_t{causal}}}, kDomain)
        .output("y");
    Graph graph = model.graph();
    EXPECT_EQ(graph.value(graph.outputs[0]).shape, (Shape{2, 3, 8}));
    Tensor mask(DType::kI32, {2, 3});
    for (const int64_t i : {0, 1, 2, 3}) mask.set(i, 1);
    const Tensor x = random_tensor({2, 3, 8}, rng);
    const auto plain = run_plainly(graph, {x, mask}), fused = run_optimized(graph, {x, mask});
    ASSERT_EQ(fused.size(), 1U);
    EXPECT_LT(relative_error(fused[0], plain[0]), 1e-5);
    ASSERT_TRUE(optimize(graph).ok());
    EXPECT_EQ(count(graph, "hone.Attention"), 1) << describe(graph);
    EXPECT_EQ(count(graph, "Softmax"), 0);
  }
}

TEST(microsoft, attention_refuses_what_does_not_fit) {
  const auto with = [](const Shape& weights, const Shape& mask, const AttributeList& attributes) {
    TestModel model(17);
    model.input("x", {2, 3, 8}).input("w", weights).input("mask", mask, DType::kI32);
    model.node("Attention", {"x", "w", "", "mask"}, {"y"}, attributes, kDomain).output("y");
    return model;
  };
  const AttributeList two = {{"num_heads", int64_t{2}}};
  EXPECT_TRUE(with({8, 24}, {4}, two).import().ok());
  expect_error(with({8, 24}, {5, 1}, two), Code::kUnsupported,
               "node 'node_y' (com.microsoft.Attention): a mask of shape [5, 1], expected [2], "
               "[4], [2, 3] or [2, 3, 3]");
  expect_error(with({8, 21}, {2}, two), Code::kInvalid, "2 heads in a value of shape [2, 3, 7]");
  expect_error(with({7, 24}, {2}, two), Code::kInvalid, "weights of shape [7, 24]");
  expect_error(with({8, 24}, {2}, {}), Code::kInvalid, "0 heads");
  expect_error(with({8, 24}, {2}, {{"num_heads", int64_t{2}}, {"do_rotary", int64_t{1}}}),
               Code::kUnsupported, "do_rotary is 1, expected 0");
  expect_error(
      with({8, 24}, {2}, {{"num_heads", int64_t{2}}, {"qkv_hidden_sizes", Shape{8, 8, 9}}}),
      Code::kInvalid, "qkv_hidden_sizes [8, 8, 9]");
}

TEST(microsoft, fused_products_are_products_and_what_is_behind_them) {
  Rng rng(8);
  const Tensor w = random_tensor({4, 2, 3, 3}, rng), b = random_tensor({4}, rng);
  const std::vector<Tensor> inputs = {random_tensor({1, 2, 5, 5}, rng),
                                      random_tensor({1, 4, 3, 3}, rng)};
  TestModel fused(17), plain(17);
  for (TestModel* model : {&fused, &plain})
    model->input("x", {1, 2, 5, 5}).input("z", {1, 4, 3, 3}).constant("w", w).constant("b", b);
  fused.node("FusedConv", {"x", "w", "b", "z"}, {"y"},
             {{"activation", std::string("LeakyRelu")}, {"activation_params", std::vector{0.25F}}},
             kDomain);
  plain.node("Conv", {"x", "w", "b"}, {"c"}).node("Add", {"c", "z"}, {"s"});
  plain.node("LeakyRelu", {"s"}, {"y"}, {{"alpha", 0.25F}});
  expect_same(fused.output("y"), plain.output("y"), inputs);

  TestModel unknown(17);
  unknown.input("x", {2, 3}).input("w", {3, 4});
  unknown.node("FusedGemm", {"x", "w"}, {"y"}, {{"activation", std::string("Frob")}}, kDomain);
  expect_error(unknown.output("y"), Code::kUnsupported,
               "node 'node_y' (com.microsoft.FusedGemm): the activation 'Frob'");
}

TEST(microsoft, skip_layer_norm_gives_the_sum_too) {
  Rng rng(9);
  const Tensor scale = random_tensor({4}, rng), bias = random_tensor({4}, rng);
  TestModel model(17), plain(17);
  for (TestModel* one : {&model, &plain})
    one->input("x", {2, 3, 4})
        .input("skip", {3, 4})
        .constant("scale", scale)
        .constant("bias", bias);
  model.node("SkipLayerNormalization", {"x", "skip", "scale", "", "bias"}, {"y", "", "", "sum"},
             {{"epsilon", 0.01F}}, kDomain);
  plain.node("Add", {"x", "skip"}, {"s"}).node("Add", {"s", "bias"}, {"sum"});
  plain.node("LayerNormalization", {"sum", "scale"}, {"y"}, {{"epsilon", 0.01F}});
  const std::vector<Tensor> inputs = {random_tensor({2, 3, 4}, rng), random_tensor({3, 4}, rng)};
  expect_same(model.output("y").output("sum"), plain.output("y").output("sum"), inputs);
}

TEST(microsoft, steps_of_a_quantised_lstm_share_their_weights) {
  TestModel lstm(17);
  lstm.input("x", {4, 1, 3}).input("w", {2, 3, 8}, DType::kI8).input("r", {2, 2, 8}, DType::kI8);
  for (const std::string of : {"w", "r"})
    lstm.input(of + "_scale", {2}).input(of + "_zero", {2, 8}, DType::kI8);
  lstm.node("DynamicQuantizeLSTM",
            {"x", "w", "r", "", "", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"}, {"y"},
            {{"hidden_size", int64_t{2}}, {"direction", std::string("bidirectional")}}, kDomain);
  const Graph graph = lstm.output("y").graph();
  std::set<ValueId> weights;
  for (const Node& node : graph.nodes) {
    if (node.type == "MatMul") weights.insert(node.inputs[1]);
  }
  EXPECT_EQ(count(graph, "MatMul"), 2 * (1 + 4));
  EXPECT_EQ(weights.size(), 4);  // W and R of each direction
}

TEST(microsoft, operands_that_are_missing_or_do_not_fit_are_named) {
  TestModel embed(17);
  embed.input("ids", {1, 4}, DType::kI32).input("words", {9, 8}).input("places", {3, 8});
  embed.input("scale", {8}).input("shift", {8});
  TestModel no_table = std::move(embed);
  no_table.node("EmbedLayerNormalization", {"ids", "", "words", "places", "", "scale", "shift"},
                {"y", "m"}, {}, kDomain);
  expect_error(no_table.output("y"), Code::kInvalid, "3 positions for sequences of 4");
  TestModel lstm(17);
  lstm.input("x", {2, 1, 3}).input("w", {1, 3, 8}, DType::kI8).input("r", {1, 2, 8}, DType::kI8);
  lstm.node("DynamicQuantizeLSTM", {"x", "w", "r"}, {"y"}, {{"hidden_size", int64_t{2}}}, kDomain);
  expect_error(lstm.output("y"), Code::kInvalid, "operand 8 is missing");
  TestModel groups(17);
  groups.input("x", {1, 2, 2, 4}).input("s", {4}).input("b", {4});
  groups.node("GroupNorm", {"x", "s", "b"}, {"y"},
              {{"groups", int64_t{2}}, {"activation", int64_t{2}}}, kDomain);
  expect_error(groups.output("y"), Code::kInvalid,
               "activation is 2, expected 0 (none) or 1 (SiLU)");
  TestModel turned(17);
  turned.input("x", {1, 3, 8}).input("at", {2}, DType::kI64).input("c", {5, 4}).input("s", {5, 4});
  turned.node("RotaryEmbedding", {"x", "at", "c", "s"}, {"y"}, {}, kDomain);
  expect_error(turned.output("y"), Code::kInvalid,
               "position_ids of shape [2], expected [1] or [1, 3]");
}

}  // namespace
}  // namespace hone::graph
