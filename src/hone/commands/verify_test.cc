#include "hone/commands/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "hone/commands/check/compare.h"
#include "hone/graph/graph.h"
#include "hone/graph/test_model.h"
#include "hone/session/naive_run.h"
#include "hone/target/target.h"

namespace hone {
namespace {

using graph::floats;
using graph::TestModel;

// ---- compare ----

TEST(compare, measures_errors_by_the_largest_magnitude) {
  const Tensor expected = floats({2, 2}, {1, -100, 3, 4});
  double error = 0;
  EXPECT_FALSE(compare(floats({2, 2}, {1.05F, -100, 3, 4}), expected, 1e-3, error));
  EXPECT_NEAR(error, 5e-4, 1e-7);
  const auto wrong = compare(floats({2, 2}, {2, -100, 6, 4}), expected, 1e-3, error);
  ASSERT_TRUE(wrong.has_value());
  EXPECT_EQ(wrong->index, (Shape{1, 0}));
  EXPECT_EQ(wrong->found, 6);
  EXPECT_EQ(wrong->expected, 3);
  EXPECT_NEAR(wrong->error, 0.03, 1e-9);
  EXPECT_EQ(wrong->wrong, 2);
  EXPECT_EQ(wrong->elements, 4);
}

TEST(compare, takes_what_is_not_finite_literally) {
  const float inf = HUGE_VALF, nan = NAN;
  double error = 0;
  EXPECT_FALSE(compare(floats({3}, {inf, nan, 1}), floats({3}, {inf, nan, 1}), 1e-3, error));
  for (const std::vector<float>& found :
       {std::vector<float>{-inf, nan, 1}, std::vector<float>{inf, 0, 1},
        std::vector<float>{inf, nan, nan}}) {
    const auto wrong = compare(floats({3}, found), floats({3}, {inf, nan, 1}), 1e6, error);
    ASSERT_TRUE(wrong.has_value());
    EXPECT_EQ(wrong->wrong, 1);
    EXPECT_TRUE(std::isinf(wrong->error));
  }
  // An infinity does not make everything else small.
  EXPECT_TRUE(compare(floats({2}, {inf, 2}), floats({2}, {inf, 1}), 1e-3, error).has_value());
}

TEST(compare, wants_integers_exactly_and_bytes_to_one_step) {
  double error = 0;
  EXPECT_TRUE(compare(graph::ints({1000, 2}), graph::ints({1001, 2}), 1, error).has_value());
  Tensor a(DType::kU8, {2}), b(DType::kU8, {2});
  a.set(0, 7), b.set(0, 8);
  EXPECT_FALSE(compare(a, b, 1e-3, error));
  b.set(0, 9);
  EXPECT_TRUE(compare(a, b, 1e-3, error).has_value());
}

TEST(compare, says_why_tensors_cannot_be_compared) {
  double error = 0;
  const auto wrong = compare(floats({2}, {1, 2}), graph::ints({1, 2}), 1, error);
  ASSERT_TRUE(wrong.has_value());
  EXPECT_EQ(wrong->problem, "found f32 [2], expected i64 [2]");
}

// ---- verify ----

// Convolution, normalization, activation, residual, pooling, product.
graph::Graph network(float last_bias = 0) {
  Rng rng(5);
  TestModel model;
  const graph::AttributeList same = {{"pads", Shape{1, 1, 1, 1}}};
  model.input("x", {1, 3, 9, 9});
  model.constant("w0", graph::random_tensor({8, 3, 3, 3}, rng));
  model.constant("w1", graph::random_tensor({8, 8, 3, 3}, rng));
  for (const char* name : {"scale", "shift", "mean", "var"})
    model.constant(name, graph::random_tensor({8}, rng, 0.5, 2));
  model.node("Conv", {"x", "w0"}, {"c"}, same);
  model.node("BatchNormalization", {"c", "scale", "shift", "mean", "var"}, {"n"});
  model.node("Relu", {"n"}, {"r"}).node("Conv", {"r", "w1"}, {"d"}, same);
  model.node("Add", {"d", "r"}, {"s"})
      .node("Transpose", {"s"}, {"t"}, {{"perm", Shape{0, 2, 3, 1}}});
  model.node("GlobalAveragePool", {"s"}, {"p"}).node("Flatten", {"p"}, {"f"});
  model.constant("w2", graph::random_tensor({8, 4}, rng));
  model.constant("b2", floats({4}, {last_bias, 0, 0, 0}));
  model.node("Gemm", {"f", "w2", "b2"}, {"y"}).output("y").output("t");
  return model.graph();
}

Tensor input() {
  Rng rng(9);
  return graph::random_tensor({1, 3, 9, 9}, rng);
}

VerifyOptions options() {
  VerifyOptions options;
  options.compile.records.use_db = false;
  options.compile.target.threads = 2;
  options.make_inputs = [](const std::vector<ModelTensor>& wanted) {
    EXPECT_EQ(wanted.size(), 1U);
    return Result<std::vector<Tensor>>(std::vector<Tensor>{input()});
  };
  return options;
}

std::vector<NamedTensor> naive_tensors(const graph::Graph& graph) {
  std::vector<NamedTensor> tensors;
  const Status status = naive_run(graph, {input()}, {.threads = 2},
                                  [&](const graph::Node&, graph::ValueId id, const Tensor& tensor) {
                                    tensors.push_back({graph.value(id).name, tensor});
                                  });
  EXPECT_TRUE(status.ok()) << status.message();
  return tensors;
}

TEST(naive_run, equals_the_interpreter) {
  const graph::Graph graph = network();
  const std::vector<NamedTensor> tensors = naive_tensors(graph);
  ASSERT_EQ(tensors.size(), graph.nodes.size());
  const std::vector<Tensor> expected = graph::run_plainly(graph, {input()});
  for (const NamedTensor& tensor : tensors) {
    if (tensor.name == "y") {
      EXPECT_LT(graph::relative_error(tensor.tensor, expected[0]), 1e-5);
    }
    if (tensor.name == "t") {
      EXPECT_LT(graph::relative_error(tensor.tensor, expected[1]), 1e-5);
    }
  }
}

TEST(verify, finds_nothing_wrong_whatever_pass_is_left_out) {
  for (const std::vector<std::string>& skip :
       {std::vector<std::string>{}, std::vector<std::string>{"fold_batch_norm"},
        std::vector<std::string>{"run_together"},
        std::vector<std::string>{"remove_identities", "fold_constants", "flatten_to_conv"}}) {
    VerifyOptions with = options();
    with.compile.advanced.skip_passes = skip;
    const Result<VerifyReport> report = verify(network(), with);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_GE(report->compared, 5);
    EXPECT_GE(report->tasks, 4);
    EXPECT_LT(report->worst_error, 1e-4);
    EXPECT_TRUE(report->divergences.empty()) << report->divergences[0].value;
  }
}

// Tasks of one key that differ in operands that a constant condition hides.
// The code of another processor would end this process.
TEST(verify, refuses_a_device_of_another_instruction_set) {
  const bool x86 = target::host().cpu().triple.starts_with("x86_64");
  for (const char* device : {"aarch64-neon", "cortex-a72", "neoverse-n1"}) {
    VerifyOptions other = options();
    other.compile.target.device = x86 ? device : "x86-64-avx2";
    const Status status = verify(network(), other).status();
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_EQ(status.message(),
              fmt::format("this CPU lacks the instruction set {}, which the device has",
                          x86 ? "AArch64" : "x86-64"));
  }
}

TEST(verify, tasks_that_hide_an_operand_get_their_own_arguments) {
  Rng rng(11);
  const Tensor x = graph::random_tensor({4, 6}, rng), y = graph::random_tensor({4, 6}, rng),
               z = graph::random_tensor({4, 6}, rng);
  TestModel model;
  model.input("x", {4, 6}).input("y", {4, 6}).input("z", {4, 6});
  Tensor yes(DType::kBool, {1}), no(DType::kBool, {1});
  yes.set(0, 1), no.set(0, 0);
  model.constant("yes", yes).constant("no", no);
  model.node("Where", {"yes", "x", "y"}, {"a"}).node("Where", {"yes", "z", "z"}, {"b"});
  model.node("Relu", {"y"}, {"r"});  // read by nobody but what is hidden
  model.node("Where", {"yes", "z", "r"}, {"c"}).node("Where", {"no", "r", "x"}, {"d"});
  model.node("Where", {"no", "z", "y"}, {"e"}).node("Sub", {"e", "x"}, {"f"});
  model.node("Where", {"no", "x", "y"}, {"g"}).node("Sub", {"g", "x"}, {"h"});
  model.node("Tanh", {"x"}, {"t"}).node("Where", {"no", "t", "z"}, {"u"});
  for (const char* name : {"a", "b", "c", "d", "f", "h", "u"}) model.output(name);
  const graph::Graph graph = model.graph();
  VerifyOptions with = options();
  with.make_inputs = [&](const std::vector<ModelTensor>&) {
    return Result<std::vector<Tensor>>(std::vector<Tensor>{x, y, z});
  };
  const Result<VerifyReport> report = verify(graph, with);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(report->divergences.empty()) << report->divergences[0].value;
  EXPECT_GE(report->compared, 7);
  std::map<std::string, Tensor> naive;
  const Status status = naive_run(graph, {x, y, z}, {.threads = 2},
                                  [&](const graph::Node&, graph::ValueId id, const Tensor& tensor) {
                                    naive[graph.value(id).name] = tensor;
                                  });
  ASSERT_TRUE(status.ok()) << status.message();
  const auto equal = [&](const char* name, const Tensor& expected) {
    EXPECT_EQ(graph::relative_error(naive[name], expected), 0) << name;
  };
  equal("a", x), equal("b", z), equal("c", z), equal("d", x), equal("e", y), equal("g", y);
  equal("h", naive["f"]), equal("u", z);
}

TEST(verify, names_the_first_node_that_differs_from_a_reference) {
  std::vector<NamedTensor> tensors = naive_tensors(network());
  for (NamedTensor& tensor : tensors) {
    if (tensor.name == "s") tensor.tensor.set(10, NAN);
    if (tensor.name == "y") tensor.tensor.set(1, tensor.tensor.at(1) + 1);
  }
  tensors.push_back({"nothing", floats({1}, {0})});
  tensors.push_back({"x", input()});
  VerifyOptions with = options();
  with.reference = &tensors;
  const Result<VerifyReport> report = verify(network(), with);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_GE(report->divergences.size(), 2U);
  const Divergence& first = report->divergences.front();
  EXPECT_EQ(first.value, "s");
  EXPECT_EQ(first.node, "node_s");
  EXPECT_EQ(first.type, "Add");
  EXPECT_EQ(first.kernel_class, "conv2d+add");
  EXPECT_EQ(first.fused, (std::vector<std::string>{"node_d", "node_s"}));
  EXPECT_EQ(first.index, (Shape{0, 0, 1, 1}));
  EXPECT_TRUE(std::isnan(first.expected));
  EXPECT_EQ(first.wrong, 1);
  EXPECT_EQ(report->divergences.back().value, "y");
  // What was fused away is not there; an input is nothing to compare.
  EXPECT_EQ(std::count(report->missing.begin(), report->missing.end(), "nothing"), 1);
  EXPECT_EQ(std::count(report->missing.begin(), report->missing.end(), "d"), 1);
  EXPECT_EQ(std::count(report->missing.begin(), report->missing.end(), "x"), 0);
}

TEST(verify, localizes_another_models_difference) {
  const std::vector<NamedTensor> tensors = naive_tensors(network(0.5F));
  VerifyOptions with = options();
  with.reference = &tensors;
  const Result<VerifyReport> report = verify(network(), with);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->divergences.size(), 1U);
  EXPECT_EQ(report->divergences[0].value, "y");
  EXPECT_NEAR(report->divergences[0].expected - report->divergences[0].found, 0.5, 1e-4);
}

TEST(verify, a_reference_must_have_something_to_compare) {
  const std::vector<NamedTensor> tensors = {{"nothing", floats({1}, {0})}};
  VerifyOptions with = options();
  with.reference = &tensors;
  EXPECT_EQ(verify(network(), with).status().code(), Code::kInvalid);
}

TEST(verify, knows_which_part_of_a_varying_shape_has_a_meaning) {
  TestModel model;
  model.input("x", {1, 3, 9, 9});
  model.node("NonZero", {"x"}, {"n"}).node("Transpose", {"n"}, {"t"}).output("t");
  const graph::Graph graph = model.graph();
  VerifyOptions with = options();
  with.make_inputs = [](const std::vector<ModelTensor>&) {
    Tensor x = input();
    for (int64_t i = 0; i < 200; ++i) x.set(i, 0);
    return Result<std::vector<Tensor>>(std::vector<Tensor>{x});
  };
  Result<VerifyReport> report = verify(graph, with);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_GE(report->compared, 2);
  EXPECT_TRUE(report->divergences.empty()) << report->divergences[0].value;

  Tensor expected(DType::kI64, {43, 4});
  for (int64_t i = 0; i < 43; ++i) {
    expected.set(4 * i + 1, static_cast<double>((200 + i) / 81));
    expected.set(4 * i + 2, static_cast<double>((200 + i) / 9 % 9));
    expected.set(4 * i + 3, static_cast<double>((200 + i) % 9));
  }
  std::vector<NamedTensor> tensors = {{"t", expected}};
  with.reference = &tensors;
  report = verify(graph, with);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(report->divergences.empty()) << report->divergences[0].problem;
  tensors[0].tensor.set(42 * 4 + 3, 0);
  report = verify(graph, with);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->divergences.size(), 1U);
  EXPECT_EQ(report->divergences[0].index, (Shape{42, 3}));
}

}  // namespace
}  // namespace hone
