#include <gtest/gtest.h>

#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

// A function of the domain "mine" with inputs and outputs, in protobuf's text format.
std::string function(const std::string& name, const std::string& inputs, const std::string& outputs,
                     const std::string& nodes, int opset = 17) {
  const auto list = [](const char* field, const std::string& names) {
    std::string text;
    for (const char name : names) text += fmt::format("{}: '{}' ", field, name);
    return text;
  };
  return fmt::format(
      "functions {{ domain: 'mine' name: '{}' {}{}{} opset_import {{ version: {} }} }}\n", name,
      list("input", inputs), list("output", outputs), nodes, opset);
}

std::string node(const std::string& type, const std::string& inputs, const std::string& output,
                 const std::string& more = "") {
  std::string text = fmt::format("node {{ op_type: '{}' output: '{}' {} ", type, output, more);
  for (const char name : inputs)
    text += fmt::format("input: '{}' ", name == '-' ? "" : std::string(1, name));
  return text + "}\n";
}

const char* const kMine = "domain: 'mine'";

TestModel model_of(const Shape& shape, const std::string& functions, int opset = 17) {
  TestModel model(opset);
  model.input("x", shape).text(functions);
  return model;
}

std::vector<float> run(const TestModel& model, const std::vector<float>& x) {
  const auto size = static_cast<int64_t>(x.size());
  const auto outputs = run_plainly(model.graph(), {floats({size}, x)});
  if (outputs.size() != 1) return {};
  const auto values = outputs[0].as<float>();
  return {values.begin(), values.end()};
}

void expect_error(const TestModel& model, Code code, const std::string& part) {
  const Status status = model.import().status();
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("test.onnx"), std::string::npos) << status.message();
}

TEST(functions, are_put_in_at_any_depth_without_mixing_names) {
  // Every name of the functions is one of the caller's, too.
  const std::string functions =
      function("twice", "x", "y", node("Add", "xx", "y")) +
      function("shift", "yx", "z",
               node("twice", "y", "x_", kMine) +
                   "node { op_type: 'Sub' input: 'x_' input: 'x' output: 'z' }");
  const TestModel model = std::move(model_of({2}, functions)
                                        .constant("y", floats({2}, {10, 20}))
                                        .node("shift", {"x", "y"}, {"x_"}, {}, "mine")
                                        .node("shift", {"x_", "x"}, {"z"}, {}, "mine")
                                        .output("z"));
  EXPECT_EQ(run(model, {1, 2}), (std::vector<float>{-17, -34}));  // 2 (2 x - y) - x
  const Graph graph = model.graph();
  EXPECT_EQ(graph.nodes.size(), 4u);
  EXPECT_EQ(graph.nodes[1].name, "node_x_/z");
}

TEST(functions, hand_on_attributes_and_leave_out_what_is_not_given) {
  const std::string leak = "attribute { name: 'alpha' ref_attr_name: 'slope' type: FLOAT }";
  const std::string functions =
      function("leak", "x", "y", node("LeakyRelu", "x", "y", leak)) +
      function(
          "outer", "x", "y",
          node("leak", "x", "y",
               std::string(kMine) + " attribute { name: 'slope' ref_attr_name: 'a' type: FLOAT }"));
  const auto with = [&](const AttributeList& attributes) {
    return std::move(
        model_of({1}, functions).node("outer", {"x"}, {"y"}, attributes, "mine").output("y"));
  };
  EXPECT_EQ(run(with({{"a", 0.5F}}), {-8}), std::vector<float>{-4});
  EXPECT_EQ(run(with({}), {-8}), std::vector<float>{-0.08F});
  expect_error(
      with({{"a", int64_t{1}}}), Code::kInvalid,
      "node 'node_y' (mine.outer): the attribute 'a' has type INT, its node 'y' expects FLOAT");
}

TEST(functions, have_inputs_and_results_that_are_not_given) {
  const std::string functions =
      function("clip", "xlh", "yz", node("Clip", "xlh", "y") + node("Neg", "x", "z")) +
      function("same", "xe", "x", "");
  const TestModel model = std::move(model_of({3}, functions)
                                        .constant("h", floats({}, {2}))
                                        .node("clip", {"x", "", "h"}, {"y"}, {}, "mine")
                                        .node("same", {"y"}, {"r"}, {}, "mine")
                                        .output("r"));
  EXPECT_EQ(run(model, {-5, 1, 5}), (std::vector<float>{-5, 1, 2}));
  expect_error(model_of({3}, functions + function("none", "xe", "e", ""))
                   .node("none", {"x"}, {"r"}, {}, "mine")
                   .output("r"),
               Code::kInvalid, "(mine.none): the result 'e' is an input that is not given");
}

TEST(functions, have_graphs_inside_that_read_their_values) {
  // The branch defines 't', which is also what the caller hands in as 'p'.
  const auto branch = [](const std::string& name, const std::string& type) {
    return fmt::format(
        "attribute {{ name: '{}' type: GRAPH g {{ name: 'b' output {{ name: 't' }} {} }} }} ", name,
        node(type, "p", "t"));
  };
  const std::string pick =
      function("pick", "cp", "q",
               node("If", "c", "q", branch("then_branch", "Neg") + branch("else_branch", "Abs")));
  Tensor no(DType::kBool, {});
  TestModel model(17);
  model.input("t", {2}).text(pick).constant("c", no);
  model.node("pick", {"c", "t"}, {"q"}, {}, "mine").output("q");
  EXPECT_EQ(run(model, {-3, 4}), (std::vector<float>{3, 4}));

  TestModel unknown(17);
  unknown.input("c", {}, DType::kBool).input("t", {2}).text(pick);
  unknown.node("pick", {"c", "t"}, {"q"}, {}, "mine").output("q");
  no.set(0, 1);
  const auto outputs = run_plainly(unknown.graph(), {no, floats({2}, {-3, 4})});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(relative_error(outputs[0], floats({2}, {3, -4})), 0);
}

TEST(functions, keep_the_opset_that_they_were_written_for) {
  // Softmax of opset 11 flattens, that of opset 13 goes along one dimension; ReduceSum's axes were
  // an attribute.
  const std::string old = function(
      "old", "x", "y", node("Softmax", "x", "y", "attribute { name: 'axis' type: INT i: 0 }"), 11);
  TestModel model(17);
  model.input("x", {2, 2}).text(old).node("old", {"x"}, {"y"}, {}, "mine");
  model.node("Softmax", {"x"}, {"z"}, {{"axis", int64_t{0}}}).output("y").output("z");
  const auto outputs = run_plainly(model.graph(), {floats({2, 2}, {0, 0, 0, 0})});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_FLOAT_EQ(outputs[0].as<float>()[0], 0.25F);
  EXPECT_FLOAT_EQ(outputs[1].as<float>()[0], 0.5F);

  const auto call = [](int opset) {
    return std::move(model_of({1}, function("f", "x", "y", node("HardSwish", "x", "y"), opset))
                         .node("f", {"x"}, {"y"}, {}, "mine")
                         .output("y"));
  };
  EXPECT_TRUE(call(14).import().ok());
  expect_error(call(13), Code::kUnsupported, "HardSwish of opset 13 (node 'node_y/y')");
  expect_error(call(6), Code::kUnsupported, "node 'node_y' (mine.f): opset 6, expected 7 to 28");
}

TEST(functions, go_before_operators_of_their_name) {
  std::string text = function("Relu", "x", "y", node("Neg", "x", "y"));
  text.replace(text.find("'mine'"), 6, "'ai.onnx'");
  EXPECT_EQ(run(std::move(model_of({1}, text).node("Relu", {"x"}, {"y"}).output("y")), {3}),
            std::vector<float>{-3});
}

TEST(functions, that_fit_no_call_are_refused) {
  const auto with = [](const std::string& functions) {
    return std::move(model_of({2}, functions).node("f", {"x"}, {"y"}, {}, "mine").output("y"));
  };
  expect_error(with(function("f", "x", "y", node("g", "x", "y", kMine)) +
                    function("g", "x", "y", node("f", "x", "y", kMine))),
               Code::kInvalid,
               "node 'node_y/y/y' (mine.f): a function that calls itself (mine.f -> mine.g -> "
               "mine.f)");
  expect_error(with(function("f", "", "y", node("Neg", "x", "y"))), Code::kInvalid,
               "1 operands and 1 results, the function has 0 and 1");
  expect_error(with(function("f", "x", "y", node("Neg", "z", "y"))), Code::kInvalid,
               "its node 'y' (Neg) reads 'z', which nothing in the function defines");
  expect_error(with(function("f", "x", "y", node("Neg", "x", "z"))), Code::kInvalid,
               "output 'y' is computed by no node");
  expect_error(with(function("f", "x", "y", node("Neg", "x", "y") + node("Abs", "x", "y"))),
               Code::kInvalid, "two values of the function are named 'y'");
  const std::string good = function("f", "x", "y", node("Neg", "x", "y"));
  expect_error(with(good + good), Code::kInvalid, "two functions are 'mine.f'");
  expect_error(with(good).text("graph { " +
                               node("Elu", "x", "e",
                                    "attribute { name: 'alpha' ref_attr_name: 'a' type: FLOAT }") +
                               "}"),
               Code::kInvalid, "has the attribute 'a' of a function's call, and is in no function");
}

TEST(functions, that_would_grow_without_bound_are_refused) {
  std::string functions;
  for (char name = 'a'; name < 'y'; ++name) {
    const std::string next(1, static_cast<char>(name + 1));
    functions += function(std::string(1, name), "x", "y",
                          node(next, "x", "t", kMine) + node(next, "t", "y", kMine));
  }
  functions += function("y", "x", "y", node("Neg", "x", "y"));
  expect_error(model_of({1}, functions).node("a", {"x"}, {"y"}, {}, "mine").output("y"),
               Code::kUnsupported, "more than 100000 nodes");
  std::string deep;
  for (int i = 0; i < 300; ++i)
    deep +=
        function(fmt::format("f{}", i), "x", "y", node(fmt::format("f{}", i + 1), "x", "y", kMine));
  expect_error(model_of({1}, deep).node("f0", {"x"}, {"y"}, {}, "mine").output("y"),
               Code::kUnsupported, "more than 200 deep");
}

}  // namespace
}  // namespace hone::graph
