// Operators of com.microsoft on quantised numbers: what is refused, and what ONNX Runtime does not
// take. Their values are compared with ONNX Runtime in tests/quantized_operators_test.py.
#include <gtest/gtest.h>

#include <cmath>

#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

const char* const kDomain = "com.microsoft";

void expect_message(const TestModel& model, Code code, const std::string& part) {
  const Status status = model.import().status();
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

Tensor of_type(DType type, const Shape& shape, const std::vector<double>& values) {
  Tensor tensor(type, shape);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.set(i, values[static_cast<size_t>(i) % values.size()]);
  return tensor;
}

// A node that reads x, of bytes, and constants: scales "half" and "one", the zero point "three".
TestModel bytes(const std::string& type, const Shape& shape, const std::vector<std::string>& inputs,
                const AttributeList& attributes = {}) {
  TestModel model(17);
  model.input("x", shape, DType::kU8).input("signed", shape, DType::kI8);
  model.constant("half", floats({}, {0.5F})).constant("one", floats({1}, {1}));
  model.constant("two", floats({2}, {1, 2})).constant("three", of_type(DType::kU8, {}, {3}));
  model.node(type, inputs, {"y"}, attributes, kDomain).output("y");
  return model;
}

TEST(quantized, zero_points_that_are_not_given_are_zero) {
  const TestModel sum = bytes("QLinearAdd", {4}, {"x", "half", "", "x", "half", "three", "one"});
  const Tensor x = of_type(DType::kU8, {4}, {0, 1, 100, 255}), unused(DType::kI8, {4});
  const auto y = run_plainly(sum.graph(), {x, unused});
  ASSERT_EQ(y.size(), 1U);
  ASSERT_EQ(y[0].dtype(), DType::kU8);
  const double expected[] = {0, 0, 98, 254};  // (x + x - 3) / 2, rounded to even, at least 0
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(y[0].at(i), expected[i]) << i;
}

TEST(quantized, operands_that_do_not_fit_are_named) {
  expect_message(bytes("QLinearAdd", {4}, {"x", "two", "three", "x", "half", "", "one"}),
                 Code::kInvalid, "operand 1, a scale, is f32 [2], expected one f32");
  expect_message(bytes("QLinearMul", {4}, {"x", "half", "half", "x", "half", "", "one"}),
                 Code::kInvalid, "operand 2, a zero point, is f32 [], expected one u8");
  expect_message(bytes("QLinearMul", {4}, {"x", "half", "", "signed", "half", "", "one"}),
                 Code::kInvalid, "operands of types u8 and i8, expected one type");
  expect_message(bytes("QLinearSigmoid", {4}, {"half", "half", "", "one"}), Code::kUnsupported,
                 "operand 0 of type f32, expected i8 or u8");
  expect_message(bytes("QLinearSoftmax", {4}, {"x", "half", "", "one", "three"}), Code::kInvalid,
                 "the attribute 'opset', which says what the axis means, is missing");
  expect_message(bytes("QLinearSoftmax", {4}, {"x", "half", "", "one", "three"},
                       {{"opset", int64_t{13}}, {"axis", int64_t{1}}}),
                 Code::kInvalid, "axis 1 of data of shape [4]");
  expect_message(bytes("QLinearWhere", {4}, {"x", "x", "half", "", "x", "half", "", "one"}),
                 Code::kInvalid, "a condition of type u8");
  expect_message(bytes("QLinearConcat", {4}, {"half", "three", "x", "half", "three", "x"},
                       {{"axis", int64_t{0}}}),
                 Code::kInvalid, "6 operands, expected a scale, a zero point, and three for each");
  expect_message(bytes("QLinearGlobalAveragePool", {4, 4}, {"x", "half", "", "one"}),
                 Code::kInvalid, "data of shape [4, 4], expected N, C and spatial dimensions");
}

TEST(quantized, products_name_what_does_not_fit) {
  const auto product = [](const Tensor& added) {
    TestModel model(17);
    model.input("a", {2, 3}, DType::kU8).constant("b", of_type(DType::kI8, {3, 4}, {1, -2, 3}));
    model.constant("scale", floats({}, {0.5F})).constant("za", of_type(DType::kU8, {}, {3}));
    model.constant("zb", of_type(DType::kI8, {}, {0})).constant("c", added);
    model.node("QGemm", {"a", "scale", "za", "b", "scale", "zb", "c", "scale"}, {"y"}, {}, kDomain);
    model.output("y");
    return model;
  };
  expect_message(product(Tensor(DType::kI32, {4})), Code::kInvalid,
                 "y_scale and y_zero_point must be given together");
  expect_message(product(Tensor(DType::kI32, {3})), Code::kInvalid,
                 "C is i32 [3], expected i32 that broadcasts to [2, 4]");
  expect_message(product(Tensor(DType::kF32, {4})), Code::kInvalid, "C is f32 [4]");
}

// A node that reads bytes, a [3, 3] or another input, and constants: "one" scale and a "vector",
// "rows" and "columns" of 3, a zero "point" and 3 "points".
TestModel square_product(const std::string& type, const std::vector<std::string>& inputs,
                         const char* domain = kDomain) {
  TestModel model(17);
  model.input("a", {3, 3}, DType::kU8).input("v", {3}, DType::kU8);
  model.input("image", {1, 1, 3, 3}, DType::kU8).input("text", {1, 3, 3}, DType::kU8);
  model.constant("b", of_type(DType::kU8, {3, 3}, {1, 2, 3, 4}));
  model.constant("filter", of_type(DType::kU8, {3, 1, 1, 1}, {1}));
  model.constant("one", floats({}, {1})).constant("vector", floats({3}, {1, 2, 4}));
  model.constant("rows", floats({3, 1}, {1, 2, 4})).constant("columns", floats({1, 3}, {1, 2, 4}));
  model.constant("point", of_type(DType::kU8, {}, {0}));
  model.constant("points", of_type(DType::kU8, {3}, {0, 1, 2}));
  model.node(type, inputs, {"y"}, {}, domain).output("y");
  return model;
}

// With as many rows as columns, a vector for the left operand or the result would fit both.
TEST(quantized, a_vector_without_a_dimension_to_go_along_is_refused) {
  const auto expect_one = [](const std::string& type, const std::vector<std::string>& inputs,
                             size_t operand, const char* domain = kDomain) {
    const TestModel model = square_product(type, inputs, domain);
    const Status status = model.import().status();
    EXPECT_EQ(status.code(), Code::kInvalid) << type << " " << operand;
    EXPECT_NE(status.message().find(fmt::format("operand {}, a ", operand)), std::string::npos)
        << status.message();
    EXPECT_NE(status.message().find("has shape [3], expected one element"), std::string::npos)
        << status.message();
  };
  const std::vector<std::string> gemm = {"a",      "one", "point", "b",    "vector",
                                         "points", "",    "one",   "point"};
  EXPECT_TRUE(square_product("QGemm", gemm).import().ok());
  const std::vector<std::string> whole = {"a", "b", "one", "vector", "point", "points"};
  EXPECT_TRUE(square_product("MatMulIntegerToFloat", whole).import().ok());
  const std::vector<std::string> image = {"image",  "one", "point", "filter",
                                          "vector", "",    "one",   "point"};
  const auto with = [](std::vector<std::string> inputs, size_t i, const char* name) {
    inputs[i] = name;
    return inputs;
  };
  expect_one("QGemm", with(gemm, 1, "vector"), 1);
  expect_one("QGemm", with(with(with(gemm, 1, "vector"), 7, ""), 8, ""), 1);
  expect_one("QGemm", with(gemm, 2, "points"), 2);
  expect_one("QGemm", with(gemm, 7, "vector"), 7);
  expect_one("QGemm", with(gemm, 8, "points"), 8);
  expect_one("MatMulIntegerToFloat", with(whole, 2, "vector"), 2);
  expect_one("MatMulIntegerToFloat", with(whole, 4, "points"), 4);
  const std::vector<std::string> text = {"text", "b", "vector", "one", "vector", "", "point"};
  expect_one("QAttention", with(text, 3, "vector"), 3);
  expect_one("QAttention", with(text, 6, "points"), 6);
  for (const char* domain : {"", kDomain}) {
    const std::vector<std::string> filled = with(image, 5, "point");
    EXPECT_TRUE(square_product("QLinearConv", filled, domain).import().ok());
    expect_one("QLinearConv", with(filled, 1, "vector"), 1, domain);
    expect_one("QLinearConv", with(filled, 2, "points"), 2, domain);
    expect_one("QLinearConv", with(filled, 6, "vector"), 6, domain);
    expect_one("QLinearConv", with(filled, 7, "points"), 7, domain);
  }
  expect_one("ConvInteger", {"image", "filter", "points"}, 2, "");
  expect_one("MatMulInteger", {"v", "b", "points"}, 2, "");
}

// ONNX's QLinearMatMul has one scale and zero point of the left operand and of the result by row.
TEST(quantized, vectors_of_a_products_rows_go_along_its_rows) {
  const Tensor a = of_type(DType::kU8, {3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  const std::vector<Tensor> unused = {Tensor(DType::kU8, {3}), Tensor(DType::kU8, {1, 1, 3, 3}),
                                      Tensor(DType::kU8, {1, 3, 3})};
  const auto product = [&](const char* left, const char* result, const char* zero) {
    return square_product("QLinearMatMul", {"a", left, "point", "b", "one", "point", result, zero},
                          "");
  };
  const auto expect = [&](const TestModel& model, const std::vector<double>& values) {
    const auto y = run_plainly(model.graph(), {a, unused[0], unused[1], unused[2]});
    ASSERT_EQ(y.size(), 1U);
    for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(y[0].at(i), values[static_cast<size_t>(i)]) << i;
  };
  const std::vector<double> by_row = {1, 2, 3, 8, 2, 4, 12, 16, 4};  // b is 1 2 3, 4 1 2, 3 4 1
  expect(product("vector", "one", "point"), by_row);
  expect(product("rows", "one", "point"), by_row);
  expect(product("one", "one", "points"), {1, 2, 3, 5, 2, 3, 5, 6, 3});
  expect(product("vector", "vector", "point"), {1, 2, 3, 4, 1, 2, 3, 4, 1});
  expect_message(product("columns", "one", "point"), Code::kInvalid,
                 "operand 1, scales or zero points, has shape [1, 3], expected one element");
}

// W [3, 20] of 4 bits in blocks of 16.
TestModel blocks(const Tensor& packed, const Tensor& scales, const AttributeList& changed = {}) {
  AttributeList attributes = {{"K", int64_t{20}}, {"N", int64_t{3}}, {"block_size", int64_t{16}}};
  for (const auto& [name, value] : changed) {
    const auto has_name = [&, &n = name](const auto& given) { return given.first == n; };
    std::erase_if(attributes, has_name);
    attributes.emplace_back(name, value);
  }
  TestModel model(17);
  model.input("a", {2, 20}).constant("b", packed).constant("scales", scales);
  model.node("MatMulNBits", {"a", "b", "scales"}, {"y"}, attributes, kDomain).output("y");
  return model;
}

TEST(quantized, weights_of_few_bits_become_floats_once) {
  const Tensor packed = of_type(DType::kU8, {3, 2, 8}, {0x98, 0x88}), scales(DType::kF32, {3, 2});
  EXPECT_TRUE(blocks(packed, scales).import().ok());
  Tensor ones = of_type(DType::kF32, {3, 2}, {1});
  const auto y = run_plainly(blocks(packed, ones).graph(), {of_type(DType::kF32, {2, 20}, {1})});
  ASSERT_EQ(y.size(), 1U);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(y[0].at(i), 5) << i;  // each fourth number is 9 - 8
  expect_message(blocks(Tensor(DType::kU8, {3, 2, 16}), ones), Code::kInvalid,
                 "B is u8 [3, 2, 16], expected u8 [3, 2, 8]");
  expect_message(blocks(packed, Tensor(DType::kF32, {3})), Code::kInvalid,
                 "scales are f32 [3], expected floats [3, 2]");
  expect_message(blocks(packed, ones, {{"bits", int64_t{3}}}), Code::kUnsupported,
                 "weights of 3 bits, expected 2, 4 or 8");
  expect_message(blocks(packed, ones, {{"block_size", int64_t{24}}}), Code::kInvalid,
                 "block_size is 24, expected a power of 2 from 16 on");
  expect_message(blocks(packed, ones, {{"weight_prepacked", int64_t{1}}}), Code::kUnsupported,
                 "weight_prepacked is 1");
  expect_message(blocks(Tensor(DType::kU8, {3, 2, 8}), ones, {{"K", int64_t{30}}}), Code::kInvalid,
                 "A of shape [2, 20], expected K = 30 as the last extent");
}

// However many nodes read the weights, they are not unpacked without bound.
TEST(quantized, unpacked_weights_have_a_bound) {
  constexpr int64_t kBytes = 1 << 20;
  TestModel model(17);
  model.constant("b", Tensor(DType::kU8, {1, kBytes / 16, 16}));
  model.constant("scales", Tensor(DType::kF32, {1, kBytes / 16}));
  for (int i = 0; i < 600; ++i) {
    const std::string n = std::to_string(i);
    model.input("a" + n, {1, 2 * kBytes});
    model.node("MatMulNBits", {"a" + n, "b", "scales"}, {"y" + n},
               {{"K", 2 * kBytes}, {"N", int64_t{1}}, {"block_size", int64_t{32}}}, kDomain);
    model.output("y" + n);
  }
  expect_message(model, Code::kUnsupported, "bytes: constants would take more than");
}

TEST(quantized, rows_of_blocks_are_checked) {
  const auto table = [](const Shape& scales, const AttributeList& attributes) {
    TestModel model(17);
    model.constant("data", Tensor(DType::kU8, {5, 16})).input("i", {2}, DType::kI64);
    model.constant("scales", Tensor(DType::kF32, scales));
    model.node("GatherBlockQuantized", {"data", "i", "scales"}, {"y"}, attributes, kDomain);
    model.output("y");
    return model;
  };
  const AttributeList usual = {{"block_size", int64_t{16}}};
  EXPECT_TRUE(table({5, 2}, usual).import().ok());
  expect_message(table({5, 1}, usual), Code::kInvalid,
                 "scales are f32 [5, 1], expected floats [5, 2]");
  expect_message(table({5, 2}, {{"block_size", int64_t{16}}, {"gather_axis", int64_t{1}}}),
                 Code::kUnsupported, "gather_axis and quantize_axis are both 1");
  expect_message(table({5, 2}, {{"block_size", int64_t{16}}, {"quantize_axis", int64_t{2}}}),
                 Code::kInvalid, "quantize_axis is 2 for data of shape [5, 16]");
}

TEST(quantized, caches_are_checked) {
  const auto attention = [](const Shape& past, int64_t total, const AttributeList& more) {
    TestModel model(17);
    model.input("q", {1, 2, 32}).input("k", {1, 2, 16}).input("v", {1, 2, 16});
    model.input("pk", past).input("pv", past).input("lengths", {1}, DType::kI32);
    model.constant("total", of_type(DType::kI32, {}, {static_cast<double>(total)}));
    AttributeList attributes = {{"num_heads", int64_t{2}}, {"kv_num_heads", int64_t{1}}};
    attributes.insert(attributes.end(), more.begin(), more.end());
    model.node("GroupQueryAttention", {"q", "k", "v", "pk", "pv", "lengths", "total"},
               {"y", "keys", "values"}, attributes, kDomain);
    model.output("y").output("keys").output("values");
    return model;
  };
  const Graph graph = attention({1, 1, 3, 16}, 5, {}).graph();
  EXPECT_EQ(graph.value(graph.outputs[0]).shape, (Shape{1, 2, 32}));
  EXPECT_EQ(graph.value(graph.outputs[1]).shape, (Shape{1, 1, 5, 16}));
  expect_message(attention({1, 1, 3, 8}, 5, {}), Code::kInvalid,
                 "past states f32 [1, 1, 3, 8], expected f32 [1, 1, past, 16]");
  expect_message(attention({1, 1, 3, 16}, 1, {}), Code::kInvalid,
                 "total_sequence_length [1] of 2 new tokens");
  expect_message(attention({1, 1, 3, 16}, 6, {}), Code::kInvalid,
                 "total_sequence_length is 6 for 2 new tokens and 3 in the past states");
  expect_message(attention({1, 1, 0, 16}, 5, {}), Code::kInvalid,
                 "total_sequence_length is 5 for 2 new tokens and 0 in the past states");
  expect_message(
      attention({1, 1, 3, 16}, 5, {{"causal", int64_t{0}}, {"local_window_size", int64_t{2}}}),
      Code::kUnsupported, "causal is 0 and local_window_size is 2");
  expect_message(attention({1, 1, 3, 16}, 5, {{"do_rotary", int64_t{1}}}), Code::kInvalid,
                 "do_rotary without cos_cache and sin_cache");
  EXPECT_TRUE(attention({1, 1, 3, 16}, 5, {{"smooth_softmax", int64_t{1}}}).import().ok());
  expect_message(attention({1, 1, 3, 16}, 5, {{"k_quant_type", std::string("PER_TENSOR")}}),
                 Code::kUnsupported, "k_quant_type is 'PER_TENSOR', expected NONE");
}

// A sink takes its part of what the weights of a query add up to; smooth_softmax is a sink of 0.
TEST(quantized, sinks_of_heads_take_their_part) {
  const auto attention = [](const Shape& sinks, const AttributeList& more) {
    TestModel model(17);
    model.input("q", {1, 2, 32}).input("k", {1, 2, 16}).input("v", {1, 2, 16});
    model.input("lengths", {1}, DType::kI32).constant("total", of_type(DType::kI32, {}, {2}));
    std::vector<std::string> operands = {"q", "k", "v", "", "", "lengths", "total"};
    if (!sinks.empty()) {
      model.constant("sinks", of_type(DType::kF32, sinks, {std::log(2.0), 200}));
      operands.insert(operands.end(), {"", "", "", "", "sinks"});
    }
    AttributeList attributes = {{"num_heads", int64_t{2}}, {"kv_num_heads", int64_t{1}}};
    attributes.insert(attributes.end(), more.begin(), more.end());
    model.node("GroupQueryAttention", operands, {"y", "keys", "values"}, attributes, kDomain);
    model.output("y");
    return model;
  };
  const Tensor zeros(DType::kF32, {1, 2, 32}), keys(DType::kF32, {1, 2, 16});
  Tensor values(DType::kF32, {1, 2, 16});
  for (int64_t i = 0; i < values.size(); ++i) values.set(i, i / 16 == 0 ? 6 : 12);
  const std::vector<Tensor> inputs = {zeros, keys, values, of_type(DType::kI32, {1}, {1})};
  // Scores of keys are 0: the first query sees one of them, the second one both.
  const AttributeList smooth = {{"smooth_softmax", int64_t{1}}};
  const Tensor y = run_optimized(attention({}, smooth).graph(), inputs)[0];
  for (int64_t i = 0; i < 64; ++i) EXPECT_FLOAT_EQ(static_cast<float>(y.at(i)), i < 32 ? 3 : 6);
  const Tensor sunk = run_optimized(attention({2}, {}).graph(), inputs)[0];
  for (int64_t i = 0; i < 64; ++i) {
    const double expected = i / 16 % 2 == 1 ? 0 : i < 32 ? 2 : 4.5;
    EXPECT_NEAR(sunk.at(i), expected, 1e-5) << i;
  }
  expect_message(attention({2}, smooth), Code::kInvalid,
                 "smooth_softmax is 1 and head_sink is given, expected one of them");
  expect_message(attention({2, 1}, {}), Code::kInvalid, "head_sink f32 [2, 1], expected f32 [2]");
}

// Without a causal mask, too, no query sees the padding behind a shorter sequence.
TEST(quantized, padding_of_a_first_text_is_not_seen) {
  TestModel model(17);
  model.input("q", {2, 2, 16}).input("v", {2, 2, 16}).input("lengths", {2}, DType::kI32);
  model.constant("total", of_type(DType::kI32, {}, {2}));
  model.node(
      "GroupQueryAttention", {"q", "q", "v", "", "", "lengths", "total"}, {"y", "keys", "values"},
      {{"num_heads", int64_t{1}}, {"kv_num_heads", int64_t{1}}, {"causal", int64_t{0}}}, kDomain);
  model.output("y");
  Tensor values(DType::kF32, {2, 2, 16});
  for (int64_t i = 0; i < values.size(); ++i) values.set(i, i / 16 % 2 == 0 ? 1 : 3);
  const Tensor zeros(DType::kF32, {2, 2, 16}), lengths = of_type(DType::kI32, {2}, {1, 0});
  const Tensor y = run_optimized(model.graph(), {zeros, values, lengths})[0];
  for (int64_t i = 0; i < 32; ++i) EXPECT_FLOAT_EQ(static_cast<float>(y.at(i)), 2) << i;
  for (int64_t i = 32; i < 48; ++i) EXPECT_FLOAT_EQ(static_cast<float>(y.at(i)), 1) << i;
}

}  // namespace
}  // namespace hone::graph
