#include <gtest/gtest.h>

#include "hone/graph/passes/pass_testing.h"

namespace hone::graph {
namespace {

using Types = std::vector<std::string>;

// x [1, 4, 5, 5] -> a product of the type with 6 channels.
TestModel& product(TestModel& model, Rng& rng, const std::string& type, const std::string& from,
                   const std::string& to, bool bias, int64_t pad = 0) {
  model.constant("b", random_tensor({6}, rng));
  std::vector<std::string> inputs = {from, "w"};
  if (bias) inputs.push_back("b");
  AttributeList attributes;
  if (type == "Conv") {
    attributes = {{"group", int64_t{2}}, {"pads", Shape{pad, pad, pad, pad}}};
    model.constant("w", random_tensor({6, 2, 3, 3}, rng));
  } else {
    if (type == "Gemm") attributes = {{"transB", int64_t{1}}};
    model.constant("w", random_tensor(type == "Gemm" ? Shape{6, 4} : Shape{4, 6}, rng));
  }
  return model.node(type, inputs, {to}, attributes);
}

bool is_matrix(const std::string& type) { return type == "Gemm" || type == "MatMul"; }

Tensor channel_constant(const std::string& type, int64_t channels, Rng& rng) {
  return random_tensor(is_matrix(type) ? Shape{channels} : Shape{channels, 1, 1}, rng, 0.5, 2);
}

Shape data_shape(const std::string& type) {
  return is_matrix(type) ? Shape{3, 4} : Shape{1, 4, 5, 5};
}

TEST(fold_scales, scales_and_shifts_after_a_product_go_into_it) {
  Rng rng(131);
  for (const std::string type : {"Conv", "Gemm", "MatMul"}) {
    for (const bool bias : {false, true}) {
      if (bias && type == "MatMul") continue;
      TestModel model;
      product(model.input("x", data_shape(type)), rng, type, "x", "p", bias);
      model.constant("s", channel_constant(type, 6, rng)).constant("two", floats({1}, {2}));
      model.node("Mul", {"s", "p"}, {"a"}).node("Div", {"a", "two"}, {"d"});
      model.node("Sub", {"d", "s"}, {"e"}).node("Add", {"two", "e"}, {"y"}).output("y");
      const Graph graph =
          run_pass(model.graph(), fold_scales, {random_tensor(data_shape(type), rng)});
      const Types expected = type == "MatMul" ? Types{type, "Sub", "Add"} : Types{type};
      EXPECT_EQ(types(graph), expected);
    }
  }
}

TEST(fold_scales, scales_and_shifts_before_a_product_go_into_it) {
  Rng rng(132);
  for (const std::string type : {"Conv", "Gemm", "MatMul"}) {
    for (const bool bias : {false, true}) {
      if (bias && type == "MatMul") continue;
      TestModel model;
      model.input("x", data_shape(type)).constant("s", channel_constant(type, 4, rng));
      model.node("Add", {"x", "s"}, {"a"}).node("Mul", {"a", "s"}, {"d"});
      product(model, rng, type, "d", "y", bias).output("y");
      const Graph graph =
          run_pass(model.graph(), fold_scales, {random_tensor(data_shape(type), rng)});
      const bool shifts = type == "Conv" || type == "Gemm";
      EXPECT_EQ(types(graph), shifts ? Types{type} : (Types{"Add", type})) << type;
    }
  }
}

TEST(fold_scales, a_shift_before_padding_stays) {
  Rng rng(133);
  TestModel model;
  model.input("x", {1, 4, 5, 5}).constant("s", channel_constant("Conv", 4, rng));
  model.node("Mul", {"x", "s"}, {"a"})
      .node("Add", {"a", "s"}, {"d"})
      .node("Mul", {"d", "s"}, {"e"});
  product(model, rng, "Conv", "e", "y", true, 1).output("y");
  const Graph graph = run_pass(model.graph(), fold_scales, {random_tensor({1, 4, 5, 5}, rng)});
  EXPECT_EQ(types(graph), (Types{"Mul", "Add", "Conv"}));
}

TEST(fold_scales, keeps_what_varies_otherwise_or_is_read_by_others) {
  Rng rng(134);
  TestModel model;
  model.input("x", {1, 4, 5, 5}).constant("column", random_tensor({5}, rng));
  product(model, rng, "Conv", "x", "p", true);
  model.constant("s", channel_constant("Conv", 6, rng)).node("Mul", {"p", "s"}, {"y"}).output("y");
  model.output("p")
      .node("Mul", {"x", "column"}, {"a"})
      .constant("v", random_tensor({2, 4, 1, 1}, rng));
  model.node("Conv", {"a", "v"}, {"z"}).output("z");
  const Graph before = model.graph();
  EXPECT_EQ(types(run_pass(before, fold_scales, {random_tensor({1, 4, 5, 5}, rng)})),
            types(before));
}

}  // namespace
}  // namespace hone::graph
