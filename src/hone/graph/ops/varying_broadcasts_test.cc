// Operands whose extents depend on data where a run has one element of some: these are repeated.
#include <gtest/gtest.h>

#include "hone/graph/reference_testing.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

// A model in which `a` and `b` are what the masks [4] and [3] choose of the rows of x and z.
TestModel two_choices(const Shape& x, const Shape& z) {
  TestModel m(18);
  m.input("first", {4}, DType::kBool).input("second", {3}, DType::kBool).input("x", x);
  m.input("z", z);
  m.node("Compress", {"x", "first"}, {"a"}, {{"axis", int64_t{0}}});
  m.node("Compress", {"z", "second"}, {"b"}, {{"axis", int64_t{0}}});
  return m;
}

// The first `count` elements are true.
Tensor first_of(int64_t all, int64_t count) {
  Tensor mask(DType::kBool, {all});
  for (int64_t i = 0; i < count; ++i) mask.set(i, 1);
  return mask;
}

// Expects that a run with these inputs ends with an error of this text.
void expect_error(const Graph& graph, const std::vector<Tensor>& inputs, const std::string& text) {
  const auto found = run_reference(graph, inputs);
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.status().message().find(text), std::string::npos) << found.status().message();
}

constexpr const char* kDiffer = "its operands have different numbers of elements in one dimension";

const Tensor kX = floats({4}, {1, 2, 3, 4}), kZ = floats({3}, {10, 20, 30});

TEST(varying_broadcasts, pointwise_operands_of_one_element_are_repeated) {
  TestModel m = two_choices({4}, {3});
  const Graph graph = m.node("Add", {"a", "b"}, {"y"}).output("y").graph();
  const auto sum = [&](int64_t of_a, int64_t of_b) {
    return run_optimized(graph, {first_of(4, of_a), first_of(3, of_b), kX, kZ})[0];
  };
  EXPECT_EQ(relative_error(sum(1, 3), floats({3}, {11, 21, 31})), 0);
  EXPECT_EQ(relative_error(sum(4, 1), floats({4}, {11, 12, 13, 14})), 0);
  EXPECT_EQ(relative_error(sum(2, 2), floats({2}, {11, 22})), 0);
  EXPECT_EQ(relative_error(sum(1, 1), floats({1}, {11})), 0);
  EXPECT_EQ(sum(1, 0).shape(), Shape{0});
  EXPECT_EQ(sum(0, 1).shape(), Shape{0});
}

TEST(varying_broadcasts, beside_a_number_too) {
  TestModel m = two_choices({4}, {3});
  m.constant("c", floats({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})).constant("two", floats({1}, {2}));
  m.node("Mul", {"a", "c"}, {"y"}).output("y").node("Mul", {"a", "two"}, {"twice"}).output("twice");
  const Graph graph = m.graph();
  const auto one =
      run_optimized(graph, {first_of(4, 1), first_of(3, 1), floats({4}, {3, 0, 0, 0}), kZ});
  EXPECT_EQ(relative_error(one[0], floats({2, 4}, {3, 6, 9, 12, 15, 18, 21, 24})), 0);
  EXPECT_EQ(relative_error(one[1], floats({1}, {6})), 0);
  const auto all = run_optimized(graph, {first_of(4, 4), first_of(3, 1), kX, kZ});
  EXPECT_EQ(relative_error(all[0], floats({2, 4}, {1, 4, 9, 16, 5, 12, 21, 32})), 0);
}

TEST(varying_broadcasts, an_expand_repeats_one_element) {
  TestModel m = two_choices({4}, {3});
  m.constant("five", ints({5})).node("Shape", {"b"}, {"like"});
  m.node("Expand", {"a", "five"}, {"y"})
      .output("y")
      .node("Expand", {"a", "like"}, {"w"})
      .output("w");
  const Graph graph = m.graph();
  const auto found = run_optimized(graph, {first_of(4, 1), first_of(3, 3), kX, kZ});
  EXPECT_EQ(relative_error(found[0], floats({5}, {1, 1, 1, 1, 1})), 0);
  EXPECT_EQ(relative_error(found[1], floats({3}, {1, 1, 1})), 0);
}

TEST(varying_broadcasts, an_expand_to_one_element_keeps_what_there_is) {
  TestModel m = two_choices({4}, {3});
  m.node("Shape", {"b"}, {"like"}).node("Expand", {"a", "like"}, {"y"}).output("y");
  const auto found = run_optimized(m.graph(), {first_of(4, 4), first_of(3, 1), kX, kZ});
  EXPECT_EQ(relative_error(found[0], kX), 0);
}

TEST(varying_broadcasts, an_expand_to_another_number_of_elements_is_an_error) {
  TestModel m = two_choices({4}, {3});
  const Graph graph =
      m.node("Shape", {"b"}, {"like"}).node("Expand", {"a", "like"}, {"y"}).output("y").graph();
  expect_error(graph, {first_of(4, 2), first_of(3, 3), kX, kZ}, kDiffer);
  expect_error(graph, {first_of(4, 4), first_of(3, 3), kX, kZ}, kDiffer);
  expect_error(graph, {first_of(4, 3), first_of(3, 2), kX, kZ}, kDiffer);
}

TEST(varying_broadcasts, so_is_an_expand_of_what_data_do_not_decide) {
  TestModel m = two_choices({4}, {3});
  m.node("Shape", {"b"}, {"like"}).constant("c", floats({2}, {5, 6}));
  const Graph graph = m.node("Expand", {"c", "like"}, {"y"}).output("y").graph();
  for (const int64_t count : {1, 2}) {
    const auto found = run_optimized(graph, {first_of(4, 1), first_of(3, count), kX, kZ});
    EXPECT_EQ(relative_error(found[0], floats({2}, {5, 6})), 0);
  }
  expect_error(graph, {first_of(4, 1), first_of(3, 3), kX, kZ}, kDiffer);
}

TEST(varying_broadcasts, products_have_as_many_terms_of_both_operands) {
  TestModel m = two_choices({4, 2}, {3});
  m.constant("c", floats({1, 4}, {1, 10, 100, 1000}));
  const Graph fixed = m.node("MatMul", {"c", "a"}, {"y"}).output("y").graph();
  const Tensor x = floats({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto all = run_optimized(fixed, {first_of(4, 4), first_of(3, 1), x, kZ});
  EXPECT_EQ(relative_error(all[0], floats({1, 2}, {7531, 8642})), 0);
  expect_error(fixed, {first_of(4, 3), first_of(3, 1), x, kZ}, "different numbers of terms to sum");
}

// The nodes that an operator is made of have constants of the largest shape, which fit in any run,
// but a number of the model's own is no such extent.
TEST(varying_broadcasts, operators_that_are_made_of_others_fit_the_numbers_of_the_model) {
  const Tensor x = floats({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  TestModel product = two_choices({4, 2}, {3});
  product.constant("c", floats({1, 4}, {1, 10, 100, 1000}));
  const Graph fused =
      product.node("FusedMatMul", {"c", "a"}, {"y"}, {{"alpha", 0.5F}}, "com.microsoft")
          .output("y")
          .graph();
  const auto all = run_optimized(fused, {first_of(4, 4), first_of(3, 1), x, kZ});
  EXPECT_EQ(relative_error(all[0], floats({1, 2}, {3765.5F, 4321})), 0);
  for (const int64_t count : {1, 3})
    expect_error(fused, {first_of(4, count), first_of(3, 1), x, kZ},
                 "different numbers of terms to sum");

  TestModel sum(18);
  sum.input("mask", {4}, DType::kBool).input("x", {4}, DType::kU8).constant("s", floats({}, {1}));
  Tensor numbers(DType::kU8, {4});
  for (int64_t i = 0; i < 4; ++i) numbers.set(i, static_cast<double>(10 * i));
  sum.constant("c", numbers).node("Compress", {"x", "mask"}, {"a"}, {{"axis", int64_t{0}}});
  const Graph quantized =
      sum.node("QLinearAdd", {"a", "s", "", "c", "s", "", "s"}, {"y"}, {}, "com.microsoft")
          .output("y")
          .graph();
  Tensor four(DType::kU8, {4});
  for (int64_t i = 0; i < 4; ++i) four.set(i, static_cast<double>(i + 1));
  const auto run = [&](int64_t count) {
    return run_optimized(quantized, {first_of(4, count), four})[0];
  };
  EXPECT_EQ(relative_error(run(4),
                           [&] {
                             Tensor expected(DType::kU8, {4});
                             for (int64_t i = 0; i < 4; ++i)
                               expected.set(i, static_cast<double>(11 * i + 1));
                             return expected;
                           }()),
            0);
  EXPECT_EQ(run(1).shape(), Shape{4});  // one element is repeated
  expect_error(quantized, {first_of(4, 3), four}, kDiffer);
}

TEST(varying_broadcasts, so_do_numbers_that_are_attributes) {
  TestModel m(18);
  m.input("mask", {4}, DType::kBool).input("x", {2, 4});
  m.node("Compress", {"x", "mask"}, {"a"}, {{"axis", int64_t{1}}});
  const std::vector<float> offset = {1, 2, 3, 4}, scale = {1, 1, 1, 2};
  const Graph graph =
      m.node("Scaler", {"a"}, {"y"}, {{"offset", offset}, {"scale", scale}}, "ai.onnx.ml")
          .output("y")
          .graph();
  const Tensor x = floats({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto all = run_optimized(graph, {first_of(4, 4), x});
  EXPECT_EQ(relative_error(all[0], floats({2, 4}, {0, 0, 0, 0, 4, 4, 4, 8})), 0);
  expect_error(graph, {first_of(4, 3), x}, kDiffer);
}

TEST(varying_broadcasts, products_of_as_many_matrices) {
  TestModel m = two_choices({4, 1, 2}, {3, 2, 1});
  const Graph graph = m.node("MatMul", {"a", "b"}, {"y"}).output("y").graph();
  const Tensor x = floats({4, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor z = floats({3, 2, 1}, {1, 10, 2, 20, 3, 30});
  const auto product = [&](int64_t of_a, int64_t of_b) {
    return run_optimized(graph, {first_of(4, of_a), first_of(3, of_b), x, z})[0];
  };
  EXPECT_EQ(relative_error(product(1, 3), floats({3, 1, 1}, {21, 42, 63})), 0);
  EXPECT_EQ(relative_error(product(4, 1), floats({4, 1, 1}, {21, 43, 65, 87})), 0);
  EXPECT_EQ(relative_error(product(2, 2), floats({2, 1, 1}, {21, 86})), 0);
}

// One condition chooses as many of two values: nothing has to be repeated.
TEST(varying_broadcasts, what_one_condition_chooses_has_one_extent) {
  TestModel m(18);
  m.input("mask", {4}, DType::kBool).input("x", {4, 2}).input("z", {4, 2});
  for (const char* of : {"x", "z"})
    m.node("Compress", {of, "mask"}, {std::string(of) + "1"}, {{"axis", int64_t{0}}});
  const Graph graph = m.node("Sub", {"x1", "z1"}, {"y"}).output("y").graph();
  for (const Node& node : graph.nodes) EXPECT_NE(node.type, "Gather") << node.name;
}

// Expects that the sum of `rows` and a bias repeats nothing along the width, which is fixed.
void expect_plain_sum(TestModel& m, int64_t width) {
  m.constant("bias", Tensor(DType::kF32, {width})).node("Add", {"rows", "bias"}, {"y"});
  const Graph graph = m.output("y").graph();
  for (const Node& node : graph.nodes) {
    const bool moves = node.type == "Gather" && graph.value(node.outputs[0]).dtype == DType::kF32;
    EXPECT_FALSE(moves) << node.name;
  }
}

TEST(varying_broadcasts, an_extent_of_all_turns_is_none_that_data_decide) {
  for (const int64_t turns : {2, 1000}) {  // few turns are unrolled
    TestModel m = two_choices({4, 2}, {3});
    m.constant("turns", ints({turns})).input("go", {}, DType::kBool);
    m.text(R"(graph { node { op_type: 'Loop' input: 'turns' input: 'go' input: 'a' output: 'rows'
      attribute { name: 'body' type: GRAPH g { name: 'b'
        node { op_type: 'Identity' input: 'c' output: 'on' }
        node { op_type: 'Neg' input: 's' output: 'next' }
        input { name: 'i' } input { name: 'c' } input { name: 's' }
        output { name: 'on' } output { name: 'next' } } } } })");
    expect_plain_sum(m, 2);
  }
}

TEST(varying_broadcasts, an_extent_of_both_branches_is_none_that_data_decide) {
  const std::string chosen = R"(graph { node { op_type: 'If' input: 'go' output: 'rows'
    attribute { name: 'then_branch' type: GRAPH g { name: 't'
      node { op_type: 'Slice' input: 'x' input: 'none' input: 'two' output: 'first' }
      output { name: 'first' } } }
    attribute { name: 'else_branch' type: GRAPH g { name: 'e'
      node { op_type: 'WORK' input: 'x' input: 'last' output: 'all' }
      output { name: 'all' } } } } })";
  // Branches that take long are loops, and others are both computed.
  for (const bool takes_long : {false, true}) {
    const int64_t width = takes_long ? 256 : 3;
    TestModel m(18);
    m.input("go", {}, DType::kBool).input("x", {width, width}).constant("none", ints({0}));
    std::string text = chosen;
    text.replace(text.find("WORK"), 4, takes_long ? "MatMul" : "Add");
    m.constant("two", ints({2})).constant("last", Tensor(DType::kF32, {width, width}));
    m.text(text);
    expect_plain_sum(m, width);
  }
}

// A loop that may end before its first turn.
std::string loop_of_rows(const std::string& declared) {
  return R"(graph { node { op_type: 'Loop' input: 'turns' input: 'go' output: 'rows'
    attribute { name: 'body' type: GRAPH g { name: 'b'
      node { op_type: 'Identity' input: 'c' output: 'on' }
      node { op_type: 'Neg' input: 'a' output: 'row' }
      input { name: 'i' } input { name: 'c' } output { name: 'on' }
      output { name: 'row' )" +
         declared + " } } } } }";
}

TEST(varying_broadcasts, rows_of_a_loop_have_the_extents_of_the_run) {
  const auto declared = [](const std::string& rows) {
    return "type { tensor_type { elem_type: 1 shape { dim { dim_value: " + rows +
           " } dim { dim_param: 'n' } } } }";
  };
  // A row has no more than four elements of two numbers.
  for (const auto& [text, none] : {std::pair{std::string(), Shape{0, 0, 2}},
                                   {declared("3"), {0, 3, 2}},
                                   {declared("1000"), {0, 4, 2}}}) {
    TestModel m = two_choices({4, 2}, {3});
    m.constant("turns", ints({2})).input("go", {}, DType::kBool);
    const Graph graph = m.text(loop_of_rows(text)).output("rows").graph();
    const Tensor x = floats({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    const auto run = [&](double goes) {
      Tensor go(DType::kBool, {});
      go.set(0, goes);
      return run_optimized(graph, {first_of(4, 1), first_of(3, 1), x, kZ, go})[0];
    };
    EXPECT_EQ(relative_error(run(1), floats({2, 1, 2}, {-1, -2, -1, -2})), 0);
    EXPECT_EQ(run(0).shape(), none);
  }
}

}  // namespace
}  // namespace hone::graph
