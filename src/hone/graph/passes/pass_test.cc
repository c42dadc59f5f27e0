#include <gtest/gtest.h>

#include "hone/graph/passes/pass_testing.h"

namespace hone::graph {
namespace {

TEST(remove_identities, leaves_what_computes) {
  Rng rng(61);
  TestModel model;
  model.input("x", {1, 2, 3, 3}).node("Identity", {"x"}, {"a"}).node("Dropout", {"a"}, {"b"});
  model.node("Cast", {"b"}, {"c"}, {{"to", int64_t{1}}})
      .constant("s", ints({1, 2, 3, 3}))
      .node("Reshape", {"c", "s"}, {"d"});
  model.node("AveragePool", {"d"}, {"e"}, {{"kernel_shape", Shape{1, 1}}})
      .node("Concat", {"e"}, {"f"}, {{"axis", int64_t{1}}});
  model.node("Transpose", {"f"}, {"g"}, {{"perm", Shape{0, 1, 2, 3}}})
      .node("Relu", {"g"}, {"h"})
      .node("Identity", {"h"}, {"y"})
      .output("y");
  const Graph graph =
      run_pass(model.graph(), remove_identities, {random_tensor({1, 2, 3, 3}, rng)});
  EXPECT_EQ(types(graph), std::vector<std::string>{"Relu"});
  EXPECT_EQ(graph.output_names[0], "y");
}

TEST(remove_identities, a_dropout_mask_keeps_everything) {
  TestModel model(12);
  model.input("x", {3})
      .node("Dropout", {"x"}, {"d", "mask"})
      .node("Cast", {"mask"}, {"m"}, {{"to", int64_t{1}}});
  model.node("Add", {"d", "m"}, {"y"}).output("y");
  EXPECT_EQ(relative_error(run_optimized(model.graph(), {floats({3}, {1, 2, 3})})[0],
                           floats({3}, {2, 3, 4})),
            0);
}

TEST(optimize, says_which_rules_changed_the_graph) {
  TestModel model;
  model.input("x", {2, 3})
      .constant("one", floats({}, {1}))
      .node("Identity", {"x"}, {"i"})
      .node("Mul", {"i", "one"}, {"m"});
  model.node("Neg", {"m"}, {"n"}).node("Neg", {"n"}, {"p"}).node("Exp", {"p"}, {"y"}).output("y");
  std::map<std::string, RuleCounts> found;
  PassOptions options;
  options.on_change = [&](const std::string& pass, const std::string&, const RuleCounts& rules) {
    found[pass] = rules;
  };
  Graph graph = model.graph();
  ASSERT_TRUE(optimize(graph, options).ok());
  EXPECT_EQ(found.at("remove_identities"), (RuleCounts{{"Identity", 1}}));
  const RuleCounts& algebra = found.at("simplify_algebra");
  EXPECT_EQ(algebra.at("neutral_constant"), 1);
  EXPECT_EQ(algebra.at("double_negation"), 1);
  EXPECT_EQ(algebra.at("square"), 0);  // it found nothing
  EXPECT_EQ(found.count("merge_pads"), 0U);
}

TEST(fold_constants, computes_what_no_input_reaches) {
  Rng rng(62);
  TestModel model;
  model.input("x", {2, 3})
      .constant("c", random_tensor({3, 2}, rng))
      .node("Transpose", {"c"}, {"t"});
  model.node("Exp", {"t"}, {"e"})
      .node("Softmax", {"e"}, {"s"})
      .node("Add", {"x", "s"}, {"y"})
      .output("y");
  const Graph graph = run_pass(model.graph(), fold_constants, {random_tensor({2, 3}, rng)});
  EXPECT_EQ(types(graph), std::vector<std::string>{"Add"});
}

TestModel batch_norm_after(const std::string& type, Rng& rng, bool bias) {
  TestModel model;
  std::vector<std::string> inputs = {"x", "w"};
  if (bias) inputs.push_back("b");
  model.constant("b", random_tensor({4}, rng));
  for (const char* name : {"scale", "shift", "mean", "var"})
    model.constant(name, random_tensor({4}, rng, 0.5, 2));
  if (type == "Conv") {
    model.input("x", {1, 3, 4, 4})
        .constant("w", random_tensor({4, 3, 3, 3}, rng))
        .node("Conv", inputs, {"p"});
  } else {
    model.input("x", {2, 3}).constant("w", random_tensor({3, 4}, rng)).node("Gemm", inputs, {"p"});
  }
  model.node("BatchNormalization", {"p", "scale", "shift", "mean", "var"}, {"y"}).output("y");
  return model;
}

TEST(fold_batch_norm, goes_into_the_weights_before_it) {
  Rng rng(63);
  for (const std::string type : {"Conv", "Gemm"}) {
    for (const bool bias : {false, true}) {
      const Tensor x = random_tensor(type == "Conv" ? Shape{1, 3, 4, 4} : Shape{2, 3}, rng);
      const Graph graph = run_pass(batch_norm_after(type, rng, bias).graph(), fold_batch_norm, {x});
      EXPECT_EQ(types(graph), std::vector<std::string>{type});
      // The value in between had other elements: the product does not make it any more.
      EXPECT_EQ(graph.value(graph.nodes[0].outputs[0]).name, "y");
    }
  }
}

TEST(fold_batch_norm, becomes_mul_and_add_where_the_product_is_used_twice) {
  Rng rng(64);
  TestModel model = batch_norm_after("Conv", rng, true);
  model.output("p");
  const Graph graph = run_pass(model.graph(), fold_batch_norm, {random_tensor({1, 3, 4, 4}, rng)});
  EXPECT_EQ(types(graph), (std::vector<std::string>{"Conv", "Mul", "Add"}));
}

TEST(merge_pads, adds_zeros_to_the_padding) {
  Rng rng(65);
  for (const std::string type : {"Conv", "AveragePool"}) {
    TestModel model;
    model.input("x", {1, 2, 5, 5})
        .constant("p", ints({0, 0, 1, 0, 0, 0, 1, 2}))
        .node("Pad", {"x", "p"}, {"a"});
    model.constant("w", random_tensor({3, 2, 3, 3}, rng));
    if (type == "Conv") model.node("Conv", {"a", "w"}, {"y"}, {{"pads", Shape{0, 1, 0, 0}}});
    if (type != "Conv") model.node("AveragePool", {"a"}, {"y"}, {{"kernel_shape", Shape{3, 3}}});
    const Graph graph =
        run_pass(model.output("y").graph(), merge_pads, {random_tensor({1, 2, 5, 5}, rng)});
    EXPECT_EQ(types(graph), std::vector<std::string>{type});
  }
}

TEST(merge_pads, keeps_what_is_not_zero_or_not_spatial) {
  Rng rng(66);
  for (const bool value : {true, false}) {
    TestModel model;
    model.input("x", {1, 2, 5, 5}).constant("p", ints({0, value ? 0 : 1, 1, 1, 0, 0, 1, 1}));
    model.constant("v", floats({}, {value ? 1.0f : 0.0f})).node("Pad", {"x", "p", "v"}, {"a"});
    model.constant("w", random_tensor({3, value ? 2 : 3, 3, 3}, rng))
        .node("Conv", {"a", "w"}, {"y"})
        .output("y");
    const Graph graph = run_pass(model.graph(), merge_pads, {random_tensor({1, 2, 5, 5}, rng)});
    EXPECT_EQ(count(graph, "Pad"), 1);
  }
}

TEST(merge_pads, keeps_what_repeats_the_data) {
  Rng rng(70);
  for (const std::string mode : {"reflect", "edge", "wrap"}) {
    for (const std::string type : {"Conv", "AveragePool"}) {
      TestModel model(19);
      model.input("x", {1, 2, 5, 5})
          .constant("p", ints({0, 0, 1, 0, 0, 0, 1, 2}))
          .node("Pad", {"x", "p"}, {"a"}, {{"mode", mode}});
      model.constant("w", random_tensor({3, 2, 3, 3}, rng));
      if (type == "Conv") model.node("Conv", {"a", "w"}, {"y"});
      if (type != "Conv") model.node("AveragePool", {"a"}, {"y"}, {{"kernel_shape", Shape{3, 3}}});
      const Graph graph =
          run_pass(model.output("y").graph(), merge_pads, {random_tensor({1, 2, 5, 5}, rng)});
      EXPECT_EQ(types(graph), (std::vector<std::string>{"Pad", type})) << mode;
    }
  }
}

TestModel flattened(bool trans_b, Rng& rng) {
  TestModel model;
  model.input("x", {2, 3, 4, 4})
      .constant("w", random_tensor({5, 3, 2, 2}, rng))
      .node("Conv", {"x", "w"}, {"c"});
  model.node("Flatten", {"c"}, {"f"}).constant("b", random_tensor({6}, rng));
  model.constant("g", random_tensor(trans_b ? Shape{6, 45} : Shape{45, 6}, rng));
  model.node("Gemm", {"f", "g", "b"}, {"p"}, {{"transB", int64_t{trans_b}}})
      .node("Relu", {"p"}, {"y"})
      .output("y");
  return model;
}

TEST(flatten_to_conv, a_product_after_a_flatten_is_a_convolution_of_full_size) {
  Rng rng(67);
  for (const bool trans_b : {false, true}) {
    const Graph graph = run_pass(flattened(trans_b, rng).graph(), flatten_to_conv,
                                 {random_tensor({2, 3, 4, 4}, rng)});
    // The view sinks below the Relu, so that it can join the convolution.
    EXPECT_EQ(types(graph), (std::vector<std::string>{"Conv", "Conv", "Relu", "Flatten"}));
  }
}

TEST(optimize, gives_the_same_results_with_any_pass_left_out) {
  Rng rng(68);
  const Graph graph = flattened(true, rng).graph();
  const std::vector<Tensor> inputs = {random_tensor({2, 3, 4, 4}, rng)};
  const Tensor expected = run_plainly(graph, inputs)[0];
  for (const std::string& name : pass_names()) {
    EXPECT_LT(relative_error(run_optimized(graph, inputs, {name})[0], expected), 1e-5) << name;
  }
  EXPECT_LT(relative_error(run_optimized(graph, inputs, pass_names())[0], expected), 1e-5);
}

TEST(optimize, reports_changes_and_refuses_unknown_names) {
  Rng rng(69);
  Graph graph = flattened(true, rng).graph();
  std::vector<std::string> changed;
  PassOptions options;
  options.on_change = [&](const std::string& pass, const std::string& text, const RuleCounts&) {
    changed.push_back(pass);
    EXPECT_NE(text.find("graph test (opset 17)"), std::string::npos);
  };
  ASSERT_TRUE(optimize(graph, options).ok());
  EXPECT_EQ(changed,
            (std::vector<std::string>{"flatten_to_conv", "assign_layouts", "assign_storage"}));
  options.skip = {"no_such_pass"};
  EXPECT_EQ(optimize(graph, options).code(), Code::kInvalid);
}

}  // namespace
}  // namespace hone::graph
