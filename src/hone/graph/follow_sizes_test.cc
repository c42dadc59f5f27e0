#include "hone/graph/follow_sizes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "hone/graph/passes/pass.h"
#include "hone/graph/size_check.h"

namespace hone::graph {
namespace {

// A convolutional network with the batch as in the file, 1, in a constant shape.
TestModel small_cnn(const std::string& batch) {
  Rng rng(1);
  TestModel model;
  model.open_input("x", {batch, "3", "8", "8"})
      .constant("w", random_tensor({4, 3, 3, 3}, rng))
      .constant("b", random_tensor({4}, rng))
      .constant("shape", ints({1, 64}))
      .constant("w2", random_tensor({5, 64}, rng))
      .node("Conv", {"x", "w", "b"}, {"c"}, {{"pads", Shape{1, 1, 1, 1}}})
      .node("Relu", {"c"}, {"r"})
      .node("MaxPool", {"r"}, {"p"}, {{"kernel_shape", Shape{2, 2}}, {"strides", Shape{2, 2}}})
      .node("GlobalAveragePool", {"r"}, {"g"});
  if (batch == "1") {
    model.node("Reshape", {"p", "shape"}, {"f"});
  } else {
    model.node("Flatten", {"p"}, {"f"});
  }
  model.node("Gemm", {"f", "w2"}, {"y"}, {{"transB", int64_t{1}}}).output("y").output("g");
  return model;
}

TEST(follow_sizes, a_batch_of_a_convolutional_network) {
  for (const std::string batch : {"N", "1"}) {
    const TestModel model = small_cnn(batch);
    const auto graph =
        import_ranges(model, {{"x", {{1, 4, ""}, {3, 3, ""}, {8, 8, ""}, {8, 8, ""}}}});
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    ASSERT_TRUE(graph->varying.any());
    EXPECT_EQ(graph->varying.symbols[0].name, batch == "1" ? "x.0" : "N");
    EXPECT_EQ(graph->value(graph->outputs[0]).shape, (Shape{4, 5}));
    // Nothing mixes images, so nothing reads the sizes.
    EXPECT_EQ(graph->nodes.size(), 6u);
    for (const int64_t n : {1, 2, 3, 4}) SizeCheck{model, *graph}.at({n}, n == 3);
  }
}

TEST(follow_sizes, an_open_batch_has_a_range_by_the_rule) {
  std::string taken;
  const auto graph = import_at(small_cnn("batch_size"), {.open_ranges = true, .taken = &taken});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->value(graph->inputs[0]).shape, (Shape{8, 3, 8, 8}));
  EXPECT_EQ(taken,
            "m.onnx: open dimensions are batch_size 1..8; another range: --shape batch_size=1..16");
}

TEST(follow_sizes, a_range_of_one_number_is_static) {
  const auto graph = import_ranges(small_cnn("N"), {{"N", {{2, 2, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_FALSE(graph->varying.any());
  EXPECT_EQ(graph->inputs.size(), 1u);
  EXPECT_EQ(graph->value(graph->inputs[0]).shape, (Shape{2, 3, 8, 8}));
}

// One layer of an encoder as exporters write it: shapes by Shape and Gather, positions as a slice
// of a table, a mask of the keys, the mean of all tokens, the first and the last one.
TestModel small_encoder() {
  Rng rng(2);
  const int64_t width = 8;
  TestModel model;
  model.open_input("ids", {"batch", "seq"})
      .open_input("mask", {"batch", "seq"})
      .constant("table", random_tensor({11, width}, rng))
      .constant("positions", random_tensor({1, 16, width}, rng))
      .constant("scale", random_tensor({width}, rng))
      .constant("bias", random_tensor({width}, rng));
  for (const char* name : {"wq", "wk", "wv", "wo"})
    model.constant(name, random_tensor({width, width}, rng));
  model.constant("zero", ints({0})).constant("one", ints({1})).constant("heads", ints({2, 4}));
  model.constant("flat", ints({width})).constant("m1", ints({-1}));
  model.constant("first", Tensor(DType::kI64, {})).constant("axes", ints({1, 2}));
  Tensor one(DType::kI64, {});
  one.set(0, 1);
  model.constant("index1", one)
      .constant("low", floats({}, {-3e38F}))
      .constant("unit", floats({}, {1}))
      .node("Cast", {"ids"}, {"words"}, {{"to", int64_t{7}}})
      .node("Gather", {"table", "words"}, {"e"})
      .node("Shape", {"words"}, {"shape"})
      .node("Gather", {"shape", "index1"}, {"seq0"})
      .node("Unsqueeze", {"seq0", "zero"}, {"seq"})
      .node("Gather", {"shape", "first"}, {"batch0"})
      .node("Unsqueeze", {"batch0", "zero"}, {"batch"})
      .node("Slice", {"positions", "zero", "seq", "one"}, {"p"})
      .node("Add", {"e", "p"}, {"h0"})
      .node("LayerNormalization", {"h0", "scale", "bias"}, {"h"})
      .node("Concat", {"batch", "seq", "heads"}, {"apart"}, {{"axis", int64_t{0}}})
      .node("Concat", {"batch", "seq", "flat"}, {"together"}, {{"axis", int64_t{0}}});
  for (const std::string w : {"q", "k", "v"}) {
    model.node("MatMul", {"h", "w" + w}, {w + "0"}).node("Reshape", {w + "0", "apart"}, {w + "1"});
    model.node("Transpose", {w + "1"}, {w},
               {{"perm", w == "k" ? Shape{0, 2, 3, 1} : Shape{0, 2, 1, 3}}});
  }
  model.node("Unsqueeze", {"mask", "axes"}, {"m4"})
      .node("Sub", {"unit", "m4"}, {"hidden"})
      .node("Mul", {"hidden", "low"}, {"added"})
      .node("MatMul", {"q", "k"}, {"s0"})
      .node("Add", {"s0", "added"}, {"s"})
      .node("Softmax", {"s"}, {"weights"}, {{"axis", int64_t{-1}}})
      .node("MatMul", {"weights", "v"}, {"o0"})
      .node("Transpose", {"o0"}, {"o1"}, {{"perm", Shape{0, 2, 1, 3}}})
      .node("Reshape", {"o1", "together"}, {"o2"})
      .node("MatMul", {"o2", "wo"}, {"o3"})
      .node("Add", {"o3", "h"}, {"y"})
      .node("ReduceMean", {"y"}, {"mean"}, {{"axes", Shape{1}}})
      .node("Gather", {"y", "first"}, {"cls"}, {{"axis", int64_t{1}}})
      .node("Gather", {"y", "m1"}, {"last"}, {{"axis", int64_t{1}}})
      .node("ReduceMax", {"y"}, {"max"}, {{"axes", Shape{0, 1}}});
  for (const char* name : {"y", "mean", "cls", "last", "max"}) model.output(name);
  return model;
}

TEST(follow_sizes, batch_and_sequence_of_an_encoder) {
  const TestModel model = small_encoder();
  const auto graph = import_ranges(model, {{"batch", {{1, 3, ""}}}, {"seq", {{1, 12, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->value(graph->outputs[0]).shape, (Shape{3, 12, 8}));
  const SizeCheck check{model, *graph, zero_or_one};
  for (const int64_t batch : {1, 2, 3}) {
    for (const int64_t seq : {1, 2, 7, 12}) check.at({batch, seq}, false);
  }
  check.at({2, 7}, true);
  check.at({1, 1}, true);
}

// The keys of what came before lie before the new ones, and a query sees what is not behind it.
TEST(follow_sizes, a_past_before_the_sequence) {
  Rng rng(4);
  TestModel model;
  model.open_input("x", {"batch", "seq", "4"})
      .open_input("past", {"batch", "past_len", "4"})
      .constant("one", ints({1}))
      .constant("zero", ints({0}))
      .constant("step",
                [] {
                  Tensor step(DType::kI64, {});
                  step.set(0, 1);
                  return step;
                }())
      .constant("origin", Tensor(DType::kI64, {}))
      .constant("low", floats({}, {-1e38F}))
      .constant("table", random_tensor({20, 4}, rng))
      .node("Shape", {"x"}, {"xs"})
      .node("Shape", {"past"}, {"ps"})
      .node("Gather", {"xs", "step"}, {"n"})
      .node("Gather", {"ps", "step"}, {"p"})
      .node("Add", {"n", "p"}, {"all"})
      .node("Range", {"p", "all", "step"}, {"rows"})
      .node("Range", {"origin", "all", "step"}, {"columns"})
      .node("Gather", {"table", "rows"}, {"positions"})
      .node("Add", {"x", "positions"}, {"h"})
      .node("Concat", {"past", "h"}, {"keys"}, {{"axis", int64_t{1}}})
      .node("Transpose", {"keys"}, {"kt"}, {{"perm", Shape{0, 2, 1}}})
      .node("MatMul", {"h", "kt"}, {"s"})
      .node("Unsqueeze", {"rows", "one"}, {"r2"})
      .node("LessOrEqual", {"columns", "r2"}, {"seen"})
      .node("Where", {"seen", "s", "low"}, {"masked"})
      .node("Softmax", {"masked"}, {"w"}, {{"axis", int64_t{-1}}})
      .node("MatMul", {"w", "keys"}, {"y"})
      .output("y")
      .output("keys");
  const auto graph = import_ranges(
      model, {{"batch", {{1, 2, ""}}}, {"past_len", {{0, 5, ""}}}, {"seq", {{1, 6, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  for (const int64_t past : {1, 3, 5}) {
    for (const int64_t seq : {1, 4, 6}) SizeCheck{model, *graph}.at({2, seq, past}, seq == 4);
  }
}

size_t count_of(const Graph& graph, const std::string& type) {
  return static_cast<size_t>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                           [&](const Node& node) { return node.type == type; }));
}

// Attention stays one kernel: behind a mask of keys that are there, and behind a causal one, which
// needs no other.
TEST(follow_sizes, attention_is_one_operator) {
  auto encoder = import_ranges(small_encoder(), {{"batch", {{1, 3, ""}}}, {"seq", {{1, 12, ""}}}});
  ASSERT_TRUE(encoder.ok()) << encoder.status().message();
  ASSERT_TRUE(optimize(*encoder).ok());
  EXPECT_EQ(count_of(*encoder, "hone.Attention"), 1u);
  EXPECT_EQ(count_of(*encoder, "Softmax"), 0u);

  TestModel model;
  Tensor seen(DType::kBool, {1, 16, 16});
  for (int64_t i = 0; i < seen.size(); ++i) seen.set(i, i % 16 <= i / 16);
  model.open_input("q", {"batch", "seq", "4"})
      .open_input("k", {"batch", "seq", "4"})
      .open_input("v", {"batch", "seq", "4"})
      .constant("seen", seen)
      .constant("low", floats({}, {-3.4e38F}))
      .constant("half", floats({}, {0.5}))
      .constant("zero", ints({0, 0}))
      .constant("axes", ints({1, 2}))
      .constant("part", ints({1, 2}))
      .constant("twice", ints({1}))
      .node("Shape", {"q"}, {"shape"})
      .node("Gather", {"shape", "twice"}, {"n"})
      .node("Concat", {"n", "n"}, {"ends"}, {{"axis", int64_t{0}}})
      .node("Slice", {"seen", "zero", "ends", "axes"}, {"visible"})
      .node("Transpose", {"k"}, {"kt"}, {{"perm", Shape{0, 2, 1}}})
      .node("MatMul", {"q", "kt"}, {"s0"})
      .node("Mul", {"s0", "half"}, {"s1"})
      .node("Where", {"visible", "s1", "low"}, {"s"})
      .node("Softmax", {"s"}, {"w0"}, {{"axis", int64_t{-1}}})
      .node("Cast", {"w0"}, {"w"}, {{"to", int64_t{1}}})  // as exporters write it
      .node("MatMul", {"w", "v"}, {"y"})
      .output("y");
  auto decoder = import_ranges(model, {{"batch", {{1, 2, ""}}}, {"seq", {{1, 9, ""}}}});
  ASSERT_TRUE(decoder.ok()) << decoder.status().message();
  for (const int64_t seq : {1, 5, 9}) SizeCheck{model, *decoder}.at({2, seq}, true);
  ASSERT_TRUE(optimize(*decoder).ok());
  ASSERT_EQ(count_of(*decoder, "hone.Attention"), 1u);
  for (const Node& node : decoder->nodes) {
    if (node.type == "hone.Attention") {
      EXPECT_TRUE(node.attributes.has("causal_offset"));
      EXPECT_EQ(node.inputs.size(), 3u);
    }
  }
}

// Dimensions that are merged and divided again.
TEST(follow_sizes, merged_dimensions) {
  Rng rng(5);
  TestModel model;
  model.open_input("x", {"batch", "seq", "6"})
      .constant("rows", ints({-1, 6}))
      .constant("w", random_tensor({6, 4}, rng))
      .constant("halves", ints({0, -1, 2, 6}))
      .constant("all", ints({-1}))
      .node("Reshape", {"x", "rows"}, {"flat"})
      .node("MatMul", {"flat", "w"}, {"y"})
      .node("ReduceSum", {"flat", "axis0"}, {"sum"})
      .constant("axis0", ints({0}))
      .output("y")
      .output("sum");
  const auto graph = import_ranges(model, {{"batch", {{1, 3, ""}}}, {"seq", {{1, 5, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const ShapeParts& parts = graph->value(graph->outputs[0]).forms;
  ASSERT_EQ(parts[0].size(), 2u);
  EXPECT_EQ(parts[0][1].most, 5);
  Tensor x = random_tensor({2, 3, 6}, rng);
  const auto results = run_plainly(*graph, {enlarged(x, {3, 5, 6}), sizes_at(*graph, {2, 3})});
  const auto alone = import_at(model, {.shapes = {{"x", {2, 3, 6}}}});
  ASSERT_TRUE(alone.ok());
  const auto expected = run_plainly(*alone, {x});
  EXPECT_LE(relative_error(results[1], expected[1]), 1e-6);
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t s = 0; s < 3; ++s)
      EXPECT_NEAR(results[0].at((b * 5 + s) * 4 + 1), expected[0].at((b * 3 + s) * 4 + 1), 1e-5);
  }
}

// Operators by rules of their own, on dimensions that vary: results are those of each size alone.
TEST(follow_sizes, operators_mix_only_what_is_there) {
  struct Case {
    std::string type;
    std::vector<std::string> inputs;
    Attrs attributes;
  };
  const std::vector<Case> cases = {
      {"ReduceSum", {"x", "axis1"}, {{"keepdims", int64_t{0}}}},
      {"ReduceMin", {"x"}, {{"axes", Shape{1}}}},
      {"ReduceProd", {"x"}, {{"axes", Shape{0, 1}}}},
      {"ReduceL2", {"x"}, {{"axes", Shape{1}}}},
      {"ReduceLogSumExp", {"x"}, {{"axes", Shape{1}}}},
      {"ReduceMean", {"x"}, {{"axes", Shape{0, 1, 2}}, {"keepdims", int64_t{0}}}},
      {"ArgMax", {"x"}, {{"axis", int64_t{1}}}},
      {"ArgMin", {"x"}, {{"axis", int64_t{1}}}},
      {"CumSum", {"x", "one"}, {{"reverse", int64_t{1}}}},
      {"CumSum", {"x", "one"}, {{"exclusive", int64_t{1}}}},
      {"Softmax", {"x"}, {{"axis", int64_t{1}}}},
      {"LogSoftmax", {"x"}, {{"axis", int64_t{1}}}},
      {"Slice", {"x", "axis1", "far", "axis1"}, {}},
      {"Slice", {"x", "last", "back", "axis1", "last"}, {}},
      {"Gather", {"x", "last"}, {{"axis", int64_t{1}}}},
      {"Concat", {"x", "x"}, {{"axis", int64_t{1}}}},
      {"Concat", {"w", "x"}, {{"axis", int64_t{2}}}},
      {"Pad", {"x", "pads", "two"}, {}},
      {"MatMul", {"x", "vector"}, {}},
      {"MatMul", {"xt", "x"}, {}},
      {"Einsum", {"x", "x"}, {{"equation", std::string("bsi,bsj->bij")}}},
      {"Einsum", {"x", "x"}, {{"equation", std::string("bsi,bti -> bst")}}},
      {"Einsum", {"x", "x"}, {{"equation", std::string("...i,...i -> ...")}}},
      {"Einsum", {"x", "x"}, {{"equation", std::string("b...i,b...j")}}},
      {"Transpose", {"x"}, {{"perm", Shape{1, 2, 0}}}},
      {"TopK", {"x", "axis1"}, {{"axis", int64_t{1}}}},
      {"Conv", {"xt", "kernel"}, {{"pads", Shape{1, 1}}, {"strides", Shape{2}}}},
  };
  Rng rng(8);
  for (const Case& one : cases) {
    SCOPED_TRACE(one.type + " " + one.inputs[0]);
    TestModel model;
    Tensor axis(DType::kI64, {});
    axis.set(0, 1);
    model.open_input("x", {"batch", "seq", "4"})
        .open_input("w", {"batch", "seq", "4"})
        .constant("axis1", ints({1}))
        .constant("one", axis)
        .constant("far", ints({1000}))
        .constant("last", ints({-1}))
        .constant("back", ints({-1000}))
        .constant("pads", ints({0, 1, 0, 0, 2, 1}))
        .constant("two", floats({}, {2}))
        .constant("vector", random_tensor({4}, rng))
        .constant("kernel", random_tensor({2, 4, 3}, rng))
        .node("Transpose", {"x"}, {"xt"}, {{"perm", Shape{0, 2, 1}}})
        .node(one.type, one.inputs, {"y"}, one.attributes)
        .output("y");
    const auto graph = import_ranges(model, {{"batch", {{1, 2, ""}}}, {"seq", {{2, 6, ""}}}});
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    SizeCheck{model, *graph}.at({2, 3}, true);
    SizeCheck{model, *graph}.at({1, 5}, false);
  }
}

// Sides of images: strides, padding, pools that count what is there, a residual and a mean.
TEST(follow_sizes, sides_of_images) {
  Rng rng(7);
  TestModel model;
  model.open_input("x", {"N", "2", "H", "W"})
      .constant("w1", random_tensor({4, 2, 3, 3}, rng))
      .constant("b1", random_tensor({4}, rng))
      .constant("w2", random_tensor({4, 4, 3, 3}, rng))
      .constant("w3", random_tensor({3, 4, 1, 1}, rng))
      .constant("w4", random_tensor({2, 3}, rng))
      .node("Conv", {"x", "w1", "b1"}, {"c1"},
            {{"pads", Shape{1, 1, 1, 1}}, {"strides", Shape{2, 2}}})
      .node("Relu", {"c1"}, {"r1"})
      .node("MaxPool", {"r1"}, {"p1"}, {{"kernel_shape", Shape{3, 3}}, {"pads", Shape{1, 1, 1, 1}}})
      .node("AveragePool", {"p1"}, {"p2"},
            {{"kernel_shape", Shape{3, 3}}, {"pads", Shape{1, 1, 1, 1}}})
      .node("Conv", {"p2", "w2"}, {"c2"}, {{"pads", Shape{1, 1, 1, 1}}})
      .node("Add", {"c2", "p1"}, {"s"})
      .node("MaxPool", {"s"}, {"p3"}, {{"kernel_shape", Shape{2, 2}}, {"strides", Shape{2, 2}}})
      .node("Conv", {"p3", "w3"}, {"c3"})
      .node("GlobalAveragePool", {"c3"}, {"g"})
      .node("Flatten", {"g"}, {"f"})
      .node("Gemm", {"f", "w4"}, {"y"}, {{"transB", int64_t{1}}})
      .output("y")
      .output("c3");
  const auto graph =
      import_ranges(model, {{"N", {{1, 2, ""}}}, {"H", {{8, 21, ""}}}, {"W", {{9, 16, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  for (const int64_t h : {8, 13, 20, 21}) {
    for (const int64_t w : {9, 12, 16}) SizeCheck{model, *graph}.at({2, h, w}, h == 13);
  }
}

// Biases by the distance of two tokens, from a table of bytes: what dequantises them is folded
// where there are few.
TEST(follow_sizes, parts_of_an_operator_that_are_constants_at_small_sizes) {
  Tensor table(DType::kI8, {300});
  for (int64_t i = 0; i < table.size(); ++i) table.set(i, static_cast<double>(i % 100 - 50));
  const auto number = [](DType type, double value) {
    Tensor tensor(type, {});
    tensor.set(0, value);
    return tensor;
  };
  TestModel model(17);
  model.open_input("x", {"seq", "seq"}).constant("table", table);
  model.constant("zero", number(DType::kI8, 3)).constant("scale", number(DType::kF32, 0.25));
  model.constant("0", number(DType::kI64, 0)).constant("1", number(DType::kI64, 1));
  model.constant("first", ints({0})).constant("second", ints({1}));
  model.node("Shape", {"x"}, {"shape"}).node("Gather", {"shape", "0"}, {"n"});
  model.node("Range", {"0", "n", "1"}, {"places"});
  model.node("Unsqueeze", {"places", "first"}, {"row"});
  model.node("Unsqueeze", {"places", "second"}, {"column"});
  model.node("Sub", {"row", "column"}, {"apart"}).node("Abs", {"apart"}, {"distance"});
  model.node("Gather", {"table", "distance"}, {"bytes"});
  model.node("DequantizeLinear", {"bytes", "scale", "zero"}, {"bias"});
  model.node("Add", {"x", "bias"}, {"y"}).output("y");
  expect_right(model, {{"seq", {{1, 260, ""}}}}, {{260}, {1}, {77}});
}

// What no rule makes right is refused, with the node.
TEST(follow_sizes, refuses_what_it_cannot_make_right) {
  const auto message = [](const std::string& type, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& results, const Attrs& attributes = {}) {
    TestModel model;
    Rng rng(6);
    model.open_input("x", {"batch", "seq", "4"})
        .constant("w", random_tensor({4}, rng))
        .constant("five", ints({5, 4}))
        .node(type, inputs, results, attributes);
    for (const std::string& result : results) model.output(result);
    const auto graph = import_ranges(model, {{"batch", {{1, 1, ""}}}, {"seq", {{4, 5, ""}}}});
    return graph.ok() ? std::string("imported") : graph.status().message();
  };
  // Indices count the elements of all channels.
  const std::string indices = message("MaxPool", {"x"}, {"y", "i"}, {{"kernel_shape", Shape{2}}});
  EXPECT_NE(indices.find("(MaxPool): dimension 1 of operand 0"), std::string::npos) << indices;
  const std::string fixed = message("Reshape", {"x", "five"}, {"y"});
  EXPECT_NE(fixed.find("node 'node_y' (Reshape)"), std::string::npos) << fixed;
  EXPECT_NE(fixed.find("seq=4"), std::string::npos) << fixed;
}

}  // namespace
}  // namespace hone::graph
