// What counts as wrong: not what rounding may do, and not less.
#include "hone/commands/check/model_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/commands/check/output_difference.h"
#include "hone/commands/check/rounding_noise.h"
#include "hone/graph/test_model.h"

namespace hone {
namespace {

using graph::TestModel;

// ---- output_difference ----

TEST(difference, is_relative_to_the_largest_magnitude) {
  const Tensor expected = graph::floats({4}, {1, -100, 3, 4});
  const Difference found = difference(graph::floats({4}, {2, -100, 3, 4}), expected, 1e-3);
  EXPECT_NEAR(found.error, 0.01, 1e-9);
  EXPECT_EQ(found.share, 0.25);
  EXPECT_EQ(difference(graph::floats({4}, {1.05F, -100, 3, 4}), expected, 1e-3).share, 0);
  EXPECT_EQ(difference(graph::floats({4}, {NAN, -100, 3, 4}), expected, 1e-3).error, HUGE_VAL);
  EXPECT_FALSE(difference(graph::floats({2}, {1, 2}), expected, 1e-3).same_shape);
}

TEST(difference, denormal_numbers_are_zero) {
  EXPECT_EQ(difference(graph::floats({2}, {0, 0}), graph::floats({2}, {1e-40F, 0}), 1e-5).share, 0);
}

TEST(difference, sets_have_no_order) {
  const Tensor expected = graph::floats({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(set_difference(graph::floats({3, 2}, {5, 6, 1, 2, 3, 4}), expected, 1e-5), 0);
  // Rows are compared as wholes, also if one is missing.
  EXPECT_NEAR(set_difference(graph::floats({3, 2}, {1, 4, 3, 2, 5, 6}), expected, 1e-5), 2 / 3.0,
              1e-9);
  EXPECT_NEAR(set_difference(graph::floats({2, 2}, {5, 6, 1, 2}), expected, 1e-5), 1 / 3.0, 1e-9);
  EXPECT_EQ(set_difference(graph::ints({3, 1, 2}), graph::ints({1, 2, 3}), 1e-5), 0);
  EXPECT_NEAR(set_difference(graph::ints({3, 1, 4}), graph::ints({1, 2, 3}), 1e-5), 1 / 3.0, 1e-9);
}

// ---- rounding_of ----

TEST(rounding, grows_with_what_schedules_round) {
  const auto tolerance = [](const char* text) {
    const Result<schedule::Steps> steps = schedule::parse_steps(text);
    EXPECT_TRUE(steps.ok()) << steps.status().message();
    const schedule::Steps schedules[] = {*steps};
    return rounding_of(graph::Graph(), schedules).tolerance;
  };
  EXPECT_EQ(tolerance("tensorize(matmul, m, n, k)\n"), Rounding().tolerance) << "of 16 bits";
  EXPECT_GT(tolerance("winograd(conv2d, 4)\n"), Rounding().tolerance);
  EXPECT_GT(tolerance("tensorize(matmul, m, n, k, tf32)\n"), tolerance("winograd(conv2d, 4)\n"));
  EXPECT_GT(tolerance("narrow(weight.cache, bf16)\n"),
            tolerance("tensorize(matmul, m, n, k, tf32)\n"));
}

// ---- ModelCheck ----

using Change = std::function<void(std::vector<Tensor>&)>;

struct Found {
  std::optional<WrongOutput> wrong;
  CheckSummary summary;
};

// Checks something that computes what the model does, then changes the results. `noise`: of the
// sums, as another order of them makes it.
Found check(const graph::Graph& graph, const Change& change, double noise = 0) {
  std::unique_ptr<ModelCheck> check =
      std::move(ModelCheck::create(graph, {.threads = 2, .seed = 3})).value();
  Rng rng(17);
  const auto run = [&](std::span<const Tensor> inputs) -> Result<std::vector<Tensor>> {
    NaiveModel model = std::move(NaiveModel::create(graph, {.threads = 2})).value();
    HONE_RETURN_IF_ERROR(model.compile());
    const auto disturb = [&](const graph::Node& node, Tensor& tensor) {
      if (node.type != "MatMul") return;
      for (int64_t i = 0; i < tensor.size(); ++i)
        tensor.set(i, tensor.at(i) + noise * (2 * rng.uniform() - 1));
    };
    HONE_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                          naive_outputs(model, graph, {inputs.begin(), inputs.end()}, disturb));
    for (Tensor& output : outputs) output = output.clone();
    change(outputs);
    return outputs;
  };
  Found found;
  Result<std::optional<WrongOutput>> wrong = check->check(run, Rounding(), {}, found.summary);
  EXPECT_TRUE(wrong.ok()) << wrong.status().message();
  if (wrong.ok()) found.wrong = *wrong;
  return found;
}

// Nearly equal scores: 40 rows of the constant differ by less than sums are rounded.
TestModel scores(bool ties) {
  Rng rng(5);
  TestModel model;
  model.input("x", {1, 32});
  Tensor w = graph::random_tensor({32, 200}, rng);
  for (int64_t r = 0; ties && r < 32; ++r) {
    for (int64_t c = 1; c < 200; ++c) w.set(r * 200 + c, w.at(r * 200) * (1 + 1e-9 * double(c)));
  }
  model.constant("w", w).node("MatMul", {"x", "w"}, {"s"});
  return model;
}

TEST(model_check, finds_one_wrong_element) {
  const graph::Graph graph = scores(false).output("s").graph();
  const Found right = check(graph, [](std::vector<Tensor>&) {});
  EXPECT_FALSE(right.wrong);
  EXPECT_EQ(right.summary.inputs, 3);
  EXPECT_EQ(right.summary.worst_error, 0);
  const Found wrong =
      check(graph, [](std::vector<Tensor>& y) { y[0].set(77, y[0].at(77) + 0.01 * y[0].at(0)); });
  ASSERT_TRUE(wrong.wrong);
  EXPECT_EQ(wrong.wrong->name, "s");
  EXPECT_EQ(wrong.wrong->draw, 0U);
}

TEST(model_check, results_of_ties_are_sets) {
  const graph::Graph graph = scores(true)
                                 .constant("k", graph::ints({20}))
                                 .node("TopK", {"s", "k"}, {"best", "place"})
                                 .output("best")
                                 .output("place")
                                 .graph();
  const Found right = check(
      graph, [](std::vector<Tensor>&) {}, 1e-6);
  EXPECT_FALSE(right.wrong) << right.wrong->name << right.wrong->error;
  ASSERT_EQ(right.summary.left_out.size(), 1U);
  EXPECT_TRUE(right.summary.left_out[0].starts_with("place: ")) << right.summary.left_out[0];
  // The values have no tie.
  const Found wrong = check(graph, [](std::vector<Tensor>& y) { y[0].set(3, 1.1 * y[0].at(3)); });
  ASSERT_TRUE(wrong.wrong);
  EXPECT_EQ(wrong.wrong->name, "best");
}

TEST(model_check, a_choice_without_ties_has_one_result) {
  const graph::Graph graph =
      scores(false).node("ArgMax", {"s"}, {"y"}, {{"axis", int64_t{1}}}).output("y").graph();
  EXPECT_FALSE(check(
                   graph, [](std::vector<Tensor>&) {}, 1e-7)
                   .wrong);
  EXPECT_TRUE(check(graph, [](std::vector<Tensor>& y) { y[0].set(0, y[0].at(0) + 1); }).wrong);
}

// Differences become three times as large, forty times.
TEST(model_check, what_rounding_decides_is_not_compared) {
  TestModel model = scores(false);
  model.constant("three", graph::floats({}, {3}));
  std::string last = "s";
  for (int i = 0; i < 40; ++i) {
    const std::string n = std::to_string(i);
    model.node("Mul", {last, "three"}, {"d" + n}).node("Floor", {"d" + n}, {"f" + n});
    model.node("Sub", {"d" + n, "f" + n}, {"e" + n});
    last = "e" + n;
  }
  const graph::Graph graph = model.output(last).graph();
  const Found found = check(
      graph, [](std::vector<Tensor>&) {}, 1e-6);
  EXPECT_FALSE(found.wrong);
  ASSERT_EQ(found.summary.left_out.size(), 1U);
  EXPECT_NE(found.summary.left_out[0].find("rounding decides"), std::string::npos)
      << found.summary.left_out[0];
}

TEST(model_check, inputs_that_tell_nothing_are_passed_over) {
  TestModel model;
  model.input("x", {1, 8}).node("Log", {"x"}, {"l"});
  Rng rng(5);
  model.constant("w", graph::random_tensor({8, 3}, rng)).node("MatMul", {"l", "w"}, {"y"});
  const Found found = check(model.output("y").graph(), [](std::vector<Tensor>&) {});
  EXPECT_FALSE(found.wrong);
  EXPECT_EQ(found.summary.inputs, 1);  // positive ones
}

// What is exact is not changed: 0 of a mask times the lowest float is 0, and not 1e31.
TEST(model_check, a_mask_does_not_make_a_model_seem_to_depend_on_rounding) {
  Rng rng(5);
  TestModel model;
  model.input("x", {4, 16}).input("mask", {4, 8}, DType::kI64);
  model.constant("w", graph::random_tensor({16, 8}, rng))
      .constant("one", graph::floats({}, {1}))
      .constant("lowest", graph::floats({}, {-3.4028235e38F}));
  model.node("Cast", {"mask"}, {"kept"}, {{"to", int64_t{1}}}).node("Sub", {"one", "kept"}, {"m"});
  model.node("Mul", {"m", "lowest"}, {"bias"}).node("MatMul", {"x", "w"}, {"s"});
  model.node("Add", {"s", "bias"}, {"a"}).node("Softmax", {"a"}, {"y"}).output("y");
  const graph::Graph graph = model.graph();
  EXPECT_FALSE(check(
                   graph, [](std::vector<Tensor>&) {}, 1e-6)
                   .wrong);
  const Found wrong = check(graph, [](std::vector<Tensor>& y) {
    for (int64_t i = 0; i < y[0].size(); ++i) y[0].set(i, 0.99 * y[0].at(i));
  });
  ASSERT_TRUE(wrong.wrong);
  EXPECT_LT(wrong.wrong->allowed, 1e-3);
}

TEST(model_check, results_that_are_never_numbers_are_compared_once) {
  TestModel model;
  model.input("x", {1, 8}).node("Sub", {"x", "x"}, {"zero"}).node("Log", {"zero"}, {"y"});
  const graph::Graph graph = model.output("y").graph();
  const Found found = check(graph, [](std::vector<Tensor>&) {});
  EXPECT_FALSE(found.wrong);
  EXPECT_EQ(found.summary.inputs, 1);
  EXPECT_TRUE(check(graph, [](std::vector<Tensor>& y) { y[0].set(3, 0); }).wrong);
}

}  // namespace
}  // namespace hone
