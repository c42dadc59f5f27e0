// Models that are wrong or absurd: each is one error that names the file, and takes no memory.
#include <gtest/gtest.h>

#include <limits>

#include "hone/graph/import_onnx.h"
#include "hone/graph/integer_at.h"
#include "hone/graph/op.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/tasks.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

// All that happens before schedules are chosen.
Status prepare(const TestModel& model) {
  HONE_ASSIGN_OR_RETURN(Graph graph, model.import());
  HONE_RETURN_IF_ERROR(optimize(graph));
  return extract_tasks(graph).status();
}

void expect_refused(const TestModel& model, const std::string& part) {
  const Status status = prepare(model);
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("test.onnx"), std::string::npos) << status.message();
  EXPECT_NE(status.code(), Code::kInternal) << status.message();
}

// One node with operand x of the shape, and constants.
TestModel one_node(const std::string& type, const Shape& shape,
                   const std::vector<Tensor>& constants = {}, const AttributeList& attributes = {},
                   int opset = kMaxOpset) {
  TestModel model(opset);
  model.input("x", shape);
  std::vector<std::string> operands = {"x"};
  for (size_t i = 0; i < constants.size(); ++i) {
    operands.push_back(fmt::format("c{}", i));
    model.constant(operands.back(), constants[i]);
  }
  model.node(type, operands, {"y"}, attributes).output("y");
  return model;
}

TestModel of_constants(const std::string& type, const std::vector<Tensor>& constants) {
  TestModel model(kMaxOpset);
  std::vector<std::string> operands;
  for (size_t i = 0; i < constants.size(); ++i) {
    operands.push_back(fmt::format("c{}", i));
    model.constant(operands.back(), constants[i]);
  }
  model.node(type, operands, {"y"}).output("y");
  return model;
}

constexpr int64_t kHuge = int64_t{1} << 62;

TEST(bad_model, absurd_extents_are_refused_also_beside_a_zero) {
  expect_refused(one_node("Relu", {kHuge, kHuge}), "too large");
  expect_refused(one_node("Relu", {kHuge, kHuge, 0}), "too large");
  expect_refused(of_constants("ConstantOfShape", {ints({kHuge, kHuge, 0})}), "too large");
  expect_refused(one_node("Expand", {1}, {ints({0, kHuge, kHuge})}), "too large");
}

TEST(bad_model, constants_that_fill_the_memory_are_not_made) {
  expect_refused(of_constants("ConstantOfShape", {ints({int64_t{1} << 33})}),
                 "34359738368 bytes would be computed in advance");
  expect_refused(one_node("EyeLike", {1 << 18, 1 << 18}), "computed in advance");
  expect_refused(of_constants("Range", {ints({0}), ints({(1 << 27) + 1}), ints({1})}).output("c0"),
                 "computed in advance");
  expect_refused(of_constants("HannWindow", {ints({int64_t{1} << 30})}), "size");
  expect_refused(one_node("ReduceMax", {1 << 17, 0, 1 << 17}, {ints({1})}), "computed in advance");
  TestModel product;
  product.input("a", {1 << 17, 0}).input("b", {0, 1 << 17});
  expect_refused(product.node("MatMul", {"a", "b"}, {"y"}).output("y"), "computed in advance");
  TestModel mask;
  mask.input("x", {1 << 18, 1 << 18}).node("Dropout", {"x"}, {"y", "m"}).output("m").output("y");
  expect_refused(mask, "computed in advance");
}

TEST(bad_model, numbers_that_take_long_are_not_made) {
  TestModel normal;
  normal.node("RandomNormal", {}, {"y"}, {{"shape", Shape{6, 1 << 24}}}).output("y");
  expect_refused(normal, "100663296 numbers of a constant f32 [6, 16777216] would be computed in");
  TestModel uniform;
  uniform
      .node("RandomUniform", {}, {"y"},
            {{"shape", Shape{(1 << 27) + 1}}, {"dtype", static_cast<int64_t>(DType::kF16)}})
      .output("y");
  expect_refused(uniform, "expected at most 134217728");
  expect_refused(one_node("RandomNormalLike", {1 << 13, 1 << 13}), "expected at most 33554432");
  expect_refused(one_node("Bernoulli", {1 << 14, 1 << 14}), "numbers of a constant");
  expect_refused(one_node("Multinomial", {1, 4}, {}, {{"sample_size", int64_t{1} << 28}}),
                 "numbers of a constant");
  expect_refused(of_constants("MelWeightMatrix", {ints({1 << 24}), ints({4}), ints({16000}),
                                                  floats({1}, {0}), floats({1}, {8000})}),
                 "50331648 numbers of a constant");
}

TEST(bad_model, numbers_that_take_long_count_together) {
  Graph graph;
  graph.made_numbers = kMaxMadeNumbers - 8;
  const Node node;
  InferContext c(graph, node);
  EXPECT_FALSE(c.new_numbers(DType::kF32, {9}, 1).ok());
  EXPECT_FALSE(c.new_numbers(DType::kF32, {3}, kUniformsOfFunction).ok());
  EXPECT_TRUE(c.new_numbers(DType::kF32, {1}, kUniformsOfFunction).ok());
  EXPECT_TRUE(c.new_numbers(DType::kF32, {2, 2}, 1).ok());
  EXPECT_EQ(graph.made_numbers, kMaxMadeNumbers);
  EXPECT_EQ(graph.made_bytes, 5 * 4);
}

// Phases of a stride that the result has no element of are none, and weights of one phase repeat.
TEST(bad_model, strides_beyond_the_result_take_no_time) {
  const Shape far = {1 << 23, 1 << 23};
  TestModel model(kMaxOpset);
  model.input("x", {1, 1, 3, 3}).constant("w", Tensor(DType::kF32, {1, 1, 4, 4}));
  model.node("ConvTranspose", {"x", "w"}, {"y"}, {{"strides", far}, {"output_shape", Shape{2, 2}}});
  EXPECT_TRUE(prepare(model.output("y")).ok());
  TestModel weights(kMaxOpset);
  weights.input("x", {1, 1, 3}).constant("s", ints({1, 1, 1 << 22}));
  weights.node("ConstantOfShape", {"s"}, {"w"});
  weights.node(
      "ConvTranspose", {"x", "w"}, {"y"},
      {{"strides", Shape{1024}}, {"dilations", Shape{1024}}, {"output_shape", Shape{1024}}});
  EXPECT_TRUE(prepare(weights.output("y")).ok());
}

TEST(bad_model, constants_count_together) {
  const TestModel model = of_constants("ConstantOfShape", {ints({1 << 17})});
  Graph graph = model.graph();
  graph.made_bytes = kMaxMadeBytes - 8;
  ASSERT_TRUE(optimize(graph).ok());
  EXPECT_EQ(graph.nodes.size(), 1U);
  graph = model.graph();
  ASSERT_TRUE(optimize(graph).ok());
  EXPECT_EQ(graph.made_bytes, 4 << 17);
}

TEST(bad_model, folding_that_takes_long_is_left_to_the_run) {
  TestModel model;
  model.constant("c", Tensor(DType::kF32, {1, 1, 1 << 11, 1 << 11}))
      .node("MaxPool", {"c"}, {"y"},
            {{"kernel_shape", Shape{1023, 1023}}, {"pads", Shape{511, 511, 511, 511}}})
      .output("y");
  EXPECT_TRUE(prepare(model).ok()) << prepare(model).message();
}

TEST(bad_model, nothing_is_no_window) {
  expect_refused(one_node("GlobalAveragePool", {1, 2, 0, 3}), "nothing to pool");
  expect_refused(one_node("GlobalMaxPool", {1, 2, 3, 0}), "nothing to pool");
  EXPECT_TRUE(prepare(one_node("GlobalMaxPool", {0, 2, 3, 0})).ok());
}

TEST(bad_model, windows_are_not_counted_at_endless_places) {
  const AttributeList window = {{"kernel_shape", Shape{3}}, {"pads", Shape{1, 1}}};
  expect_refused(one_node("AveragePool", {1, 1, int64_t{1} << 33}, {}, window), "means at");
}

TEST(bad_model, nothing_has_no_shape_that_depends_on_data) {
  TestModel model;
  model.input("x", {3, 0}).input("c", {2}, DType::kBool);
  model.node("Compress", {"x", "c"}, {"y"}, {{"axis", int64_t{1}}}).output("y");
  expect_refused(model, "output 'y' has no elements");
}

TEST(bad_model, sums_of_small_integers_have_no_type) {
  TestModel model;
  model.input("x", {4, 64}, DType::kU8).node("ReduceMean", {"x"}, {"y"}).output("y");
  expect_refused(model, "data of type u8");
}

TEST(bad_model, operands_have_the_types_that_the_operator_wants) {
  expect_refused(one_node("Trilu", {2, 2}, {floats({}, {1})}), "k of type f32");
  TestModel pool;
  pool.input("x", {1, 1, 2, 2}, DType::kBool);
  pool.node("MaxPool", {"x"}, {"y"}, {{"kernel_shape", Shape{2, 2}}}).output("y");
  expect_refused(pool, "data of type bool");
  TestModel boxes;
  boxes.input("b", {1, 3, 4}).input("s", {1, 1, 3}).constant("n", ints({2}));
  boxes.constant("i", ints({1})).node("NonMaxSuppression", {"b", "s", "n", "i"}, {"y"});
  expect_refused(boxes.output("y"), "operand 3 of type i64");
  expect_refused(one_node("LayerNormalization", {2, 2}, {ints({1, 1})}), "operand 1 of type i64");
}

TEST(bad_model, scales_without_data_are_refused) {
  expect_refused(one_node("QuantizeLinear", {2, 0}, {floats({2, 1}, {1, 1})}), "scales of shape");
}

TEST(bad_model, attention_needs_heads) {
  TestModel model(kMaxOpset);
  model.input("q", {1, 2, 3, 4}).input("k", {1, 0, 3, 4}).input("v", {1, 0, 3, 4});
  expect_refused(model.node("Attention", {"q", "k", "v"}, {"y"}).output("y"), "by heads");
}

TEST(bad_model, a_resized_picture_has_pixels_and_a_finite_filter) {
  const Tensor nothing = floats({0}, {});
  expect_refused(one_node("Resize", {1, 1, 4, 4}, {nothing, floats({4}, {1, 1, 0.1F, 1})}),
                 "4 elements resized to 0");
  expect_refused(one_node("Resize", {1, 1, 4, 4}, {nothing, floats({4}, {1, 1, 1e7F, 1})}),
                 "elements resized to");
}

TEST(bad_model, mel_weights_reach_no_further_than_the_spectrum) {
  const TestModel model = of_constants(
      "MelWeightMatrix", {ints({4}), ints({16}), ints({1}), floats({}, {0}), floats({}, {1e30F})});
  EXPECT_TRUE(prepare(model).ok()) << prepare(model).message();
}

TEST(bad_model, a_transform_of_endless_length_is_refused) {
  expect_refused(one_node("DFT", {1, 1 << 14, 1}), "a transform over 16384 places");
}

TEST(bad_model, a_dropout_of_constants_has_a_mask) {
  TestModel model;
  model.constant("c", floats({2}, {1, 2})).node("Dropout", {"c"}, {"y", "m"});
  EXPECT_TRUE(prepare(model.output("m").output("y")).ok());
  expect_refused(one_node("Dropout", {2}, {floats({}, {0.5F}), Tensor(DType::kBool, {0})}),
                 "training_mode bool [0], expected one bool");
}

TestModel deform_conv(const Shape& x, const Shape& weights, const Shape& offsets,
                      int64_t offset_group) {
  TestModel model(kMaxOpset);
  model.input("x", x).input("w", weights).input("o", offsets);
  model.node("DeformConv", {"x", "w", "o"}, {"y"}, {{"offset_group", offset_group}});
  model.output("y");
  return model;
}

TEST(bad_model, a_deformed_convolution_may_have_no_data_and_not_too_many_groups) {
  for (const int64_t batch : {0, 1}) {
    const TestModel model = deform_conv({batch, 2, 4, 4}, {1, 2, 3, 3}, {batch, 18, 2, 2}, 1);
    EXPECT_TRUE(prepare(model).ok()) << prepare(model).message();
  }
  expect_refused(deform_conv({1, 0, 4, 4}, {1, 0, 3, 3}, {1, 18, 2, 2}, kHuge),
                 "with 9 taps, expected at most");
  expect_refused(deform_conv({1, 2, 4, 4}, {1, 3, 3, 3}, {1, 18, 2, 2}, 1),
                 "expected weights [outputs, channels / group");
}

TEST(bad_model, random_numbers_say_what_they_expect) {
  const auto of_type = [](const std::string& type, int64_t dtype) {
    return one_node(type, {2, 2}, {}, {{"dtype", dtype}});
  };
  expect_refused(of_type("RandomNormalLike", (int64_t{1} << 32) + 1), "expected an element type");
  expect_refused(of_type("RandomUniformLike", 7), "expected a type of floats");
  expect_refused(of_type("Multinomial", 1), "expected at least 1 of i32 or i64");
}

// Numbers of attributes and operands have 64 bits; what is computed of them must not overflow.
constexpr int64_t kMost = INT64_MAX;

TEST(bad_model, numbers_that_would_overflow_are_refused) {
  const Shape wide = {1 << 22, 1 << 21, 1 << 21};  // 2^64 elements
  expect_refused(one_node("Col2Im", {1, 1, 1}, {ints({1, 1, 1}), ints(wide)},
                          {{"pads", Shape{0, 0, 0, wide[0] - 1, wide[1] - 1, wide[2] - 1}}}),
                 "and blocks [4194304, 2097152, 2097152]");
  expect_refused(one_node("Col2Im", {1, 2, 1}, {ints({4}), ints({2})},
                          {{"dilations", Shape{kMost}}, {"pads", Shape{kMost, kMost}}}),
                 "for an image [4] and blocks [2]");
  expect_refused(one_node("LpPool", {1, 1, 1, 1, 1}, {},
                          {{"kernel_shape", Shape(3, 1 << 24)},
                           {"pads", Shape{0, 0, 0, 1 << 24, 1 << 24, 1 << 24}}}),
                 "kernel_shape is [16777216, 16777216, 16777216], too large");
  expect_refused(one_node("LRN", {1, 3, 4, 4}, {}, {{"size", kMost}}), "size is 9223372036854");
  TestModel unpool;
  unpool.input("x", {1, 1, 5}).input("i", {1, 1, 5}, DType::kI64);
  unpool.node("MaxUnpool", {"x", "i"}, {"y"},
              {{"kernel_shape", Shape{2}}, {"strides", Shape{kHuge}}});
  expect_refused(unpool.output("y"), "strides [4611686018427387904]");
  TestModel regressor;
  regressor.input("x", {2, 4})
      .node("LinearRegressor", {"x"}, {"y"}, {{"targets", kHuge}}, "ai.onnx.ml");
  expect_refused(regressor.output("y"), "0 coefficients for 4611686018427387904 targets");
}

TEST(bad_model, a_type_has_no_more_than_32_bits) {
  const int64_t code = (int64_t{1} << 32) + 1;  // its lower half is the number of f32
  expect_refused(one_node("Cast", {3, 3}, {}, {{"to", code}}), "4294967297, which ONNX does not");
  expect_refused(one_node("EyeLike", {3, 3}, {}, {{"dtype", code}}), "4294967297, which ONNX");
  expect_refused(one_node("QuantizeLinear", {2}, {floats({}, {1})}, {{"output_dtype", code}}),
                 "4294967297, which ONNX");
}

TEST(bad_model, a_sequence_has_no_endless_number_of_parts) {
  for (const std::vector<Tensor>& lengths : {std::vector<Tensor>{}, {ints({1}).reshaped({})}})
    expect_refused(one_node("SplitToSequence", {int64_t{1} << 34}, lengths), "17179869184 parts");
}

// A loop of which only the run knows the number of turns, with a carried counter and a list.
TestModel loop_with(const std::string& nodes, const std::string& results) {
  TestModel model(17);
  model.input("n", {}, DType::kI64).input("limit", {}, DType::kI64).constant("one", ints({1}));
  model.constant("zero", ints({0})).input("x", {2}).node("SequenceEmpty", {}, {"none"});
  model.text(fmt::format(R"(graph {{ node {{ op_type: 'Loop' name: 'loop'
      input: 'n' input: '' input: 'zero' input: 'none' output: 'last' output: 's'
      attribute {{ name: 'body' type: GRAPH g {{ name: 'b' {}
        input {{ name: 'i' }} input {{ name: 'go' }} input {{ name: 'k' }} input {{ name: 't' }}
        {} }} }} }} }})",
                         nodes, results));
  return std::move(model.node("SequenceLength", {"s"}, {"y"}).output("last").output("y"));
}

TEST(bad_model, a_loop_has_a_body_whose_nodes_have_operands) {
  const std::string counts = "node { op_type: 'Add' input: 'k' input: 'one' output: 'next' } ";
  const std::string less = "node { op_type: 'Less' input: 'next' input: 'limit' output: 'on' } ";
  const std::string appends =
      "node { op_type: 'SequenceInsert' input: 't' input: 'x' output: 'u' } ";
  const std::string results = "output { name: 'on' } output { name: 'next' } output { name: 'u' }";
  const auto node = [](const std::string& type, const std::string& rest) {
    return fmt::format("node {{ op_type: '{}' name: 'bad' {} }} ", type, rest);
  };
  EXPECT_TRUE(prepare(loop_with(counts + less + appends, results)).ok());
  const std::string step = "node { op_type: 'Add' input: 'k' input: 'c' output: 'next' } ";
  const std::vector<std::string> bodies = {
      counts + appends + node("Less", "input: '' input: 'limit' output: 'on'"),
      counts + appends + node("Less", "input: 'next' input: '' output: 'on'"),
      counts + appends + node("Less", "output: 'on'"),
      counts + appends + node("Greater", "input: 'limit' output: 'on'"),
      counts + appends + node("Identity", "output: 'on'"),
      counts + less + appends + node("Identity", "output: 'unused'"),
      node("Add", "output: 'next'") + less + appends,
      node("Add", "input: 'k' output: 'next'") + less + appends,
      node("Add", "input: '' input: 'one' output: 'next'") + less + appends,
      node("Cast", "output: 'c'") + step + less + appends,
      node("CastLike", "output: 'c'") + step + less + appends,
      node("Identity", "output: 'c'") + step + less + appends,
  };
  for (const std::string& body : bodies) {
    SCOPED_TRACE(body);
    expect_refused(loop_with(body, results), "'loop/bad'");
  }
  // The list is then made by no loop that a run could repeat.
  for (const std::string& list :
       {node("Identity", "output: 'u'"), node("SequenceInsert", "output: 'u'"),
        node("SequenceInsert", "input: 't' output: 'u'"),
        node("SequenceInsert", "input: '' input: 'x' output: 'u'"),
        node("SequenceInsert", "input: 't' input: 'x' output: '' output: 'u'")}) {
    SCOPED_TRACE(list);
    expect_refused(loop_with(counts + less + list, results), "carries a sequence");
  }
}

TEST(bad_model, a_body_that_hands_on_no_condition_is_refused) {
  TestModel model(17);
  model.input("x", {2}).constant("n", ints({3}));
  model.text(R"(graph { node { op_type: 'Loop' name: 'loop' input: 'n' input: '' input: 'x'
      output: 'y'
      attribute { name: 'body' type: GRAPH g { name: 'b'
        node { op_type: 'Identity' name: 'bad' output: 'on' }
        node { op_type: 'Neg' input: 'v' output: 'w' }
        input { name: 'i' } input { name: 'go' } input { name: 'v' }
        output { name: 'on' } output { name: 'w' } } } } })");
  expect_refused(model.output("y"), "'loop/bad'");
}

// The elements of a constant that the model computes.
std::vector<int64_t> integers_of(const TestModel& model) {
  const Graph graph = model.graph();
  const auto& constant = graph.value(graph.outputs[0]).constant;
  EXPECT_TRUE(constant.has_value());
  if (!constant) return {};
  const auto data = constant->as<int64_t>();
  return {data.begin(), data.end()};
}

TEST(generate, numbers_at_the_ends_of_64_bits_are_exact) {
  const auto range = [](int64_t start, int64_t limit, int64_t step) {
    return integers_of(of_constants("Range", {ints({start}), ints({limit}), ints({step})}));
  };
  EXPECT_EQ(range(kHuge + 1, kHuge + 4, 1), (std::vector{kHuge + 1, kHuge + 2, kHuge + 3}));
  EXPECT_EQ(range(kMost - 1, kMost, 2), std::vector{kMost - 1});
  EXPECT_EQ(range(-kMost - 1, -kMost + 2, 2), (std::vector{-kMost - 1, -kMost + 1}));
  EXPECT_EQ(range(5, -1, -2), (std::vector<int64_t>{5, 3, 1}));
  EXPECT_EQ(range(2, -1, -1), (std::vector<int64_t>{2, 1, 0}));
  EXPECT_EQ(range(0, -1, 1), std::vector<int64_t>{});
  EXPECT_EQ(range(0, kMost, kMost), std::vector<int64_t>{0});
  for (const int64_t k : {kMost, -kMost - 1}) {
    const auto eye =
        integers_of(one_node("EyeLike", {2, 2}, {}, {{"k", k}, {"dtype", int64_t{7}}}));
    EXPECT_EQ(eye, std::vector<int64_t>(4, 0));
  }
  // The least and the largest number as a constant that is part of a kernel.
  const Tensor x = floats({2, 2}, {1, 2, 3, 4});
  for (const bool whole : {true, false}) {
    const Tensor k = ints({whole ? -kMost - 1 : kMost}).reshaped({});
    const auto y = run_optimized(one_node("Trilu", {2, 2}, {k}).graph(), {x});
    EXPECT_EQ(relative_error(y[0], whole ? x : floats({2, 2}, {0, 0, 0, 0})), 0);
  }
}

// Masks, places along a dimension and zeros of a state, of so many elements as extents say.
TEST(bad_model, constants_of_absurd_extents_are_refused) {
  constexpr int64_t kMany = 10'000'000'000;
  const std::string refused = "bytes would be computed in advance, expected at most 1073741824";
  expect_refused(of_constants("ConstantOfShape", {ints({100'000, 100'000})}),
                 "node 'node_y' (ConstantOfShape): f32 [100000, 100000] of 40000000000 " + refused);
  const Tensor weights(DType::kF32, {1, 16, 4});
  const TestModel lstm =
      one_node("LSTM", {1, 1'000'000'000, 4}, {weights, weights}, {{"hidden_size", int64_t{4}}});
  expect_refused(lstm,
                 "node 'node_y' (LSTM): a constant f32 [1000000000, 4] of 16000000000 " + refused);
  TestModel slice;
  slice.input("x", {kMany}).input("s", {1}).input("e", {1});
  slice.node("Cast", {"s"}, {"begin"}, {{"to", int64_t{7}}});
  slice.node("Cast", {"e"}, {"end"}, {{"to", int64_t{7}}});
  slice.node("Slice", {"x", "begin", "end"}, {"y"}).output("y");
  const std::string places = fmt::format("a constant i64 [{}] of {} ", kMany, 8 * kMany);
  expect_refused(slice, "node 'node_y' (Slice): " + places + refused);
  TestModel found;
  found.input("x", {kMany}).node("NonZero", {"x"}, {"i"}).node("ReduceSum", {"i"}, {"y"});
  expect_refused(found.output("y"), "node 'node_y' (ReduceSum): ");
  TestModel model;
  model.open_input("x", {"n", "2"});
  model.node("Softmax", {"x"}, {"y"}, {{"axis", int64_t{0}}}).output("y");
  const std::string bytes = model.bytes();
  const ImportOptions options{.ranges = {{"n", {{1, kMany, ""}}}}, .open_ranges = true};
  const auto graph = import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "", options);
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("node 'node_y' (Softmax): " + places + refused),
            std::string::npos)
      << graph.status().message();
}

TEST(bad_model, numbers_without_an_integer_are_the_nearest) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const Tensor numbers = floats({5}, {-kInfinite, -1e19F, -2.5F, 1e19F, kInfinite});
  const std::vector<int64_t> expected = {-kMost - 1, -kMost - 1, -2, kMost, kMost};
  for (int64_t i = 0; i < numbers.size(); ++i)
    EXPECT_EQ(integer_at(numbers, i), expected[static_cast<size_t>(i)]);
}

TEST(bad_model, a_message_is_one_line_whatever_the_names) {
  const Status unknown = prepare(one_node("No\nsuch", {2}));
  EXPECT_EQ(unknown.message().find('\n'), std::string::npos) << unknown.message();
  TestModel named;
  named.input("x\ny", {2}).node("Relu", {"x\ny"}, {"z"}).output("z");
  expect_refused(named, "input 'x?y': a name with control characters");
}

}  // namespace
}  // namespace hone::graph
