// Which ranges the inputs of a model get: by options, by the file's symbols, by the rule.
#include <gtest/gtest.h>

#include "hone/graph/import_onnx.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

// Inputs x, y, ... with these extents, of each of which the largest is an output.
TestModel model_of(const std::vector<std::vector<std::string>>& inputs) {
  TestModel model;
  std::string name = "x";
  for (const auto& extents : inputs) {
    model.open_input(name, extents).node("Relu", {name}, {"of_" + name}).output("of_" + name);
    ++name[0];
  }
  return model;
}

struct Opened {
  std::string shapes, symbols, error, taken;
};

Opened opened(const std::vector<std::vector<std::string>>& inputs, ImportOptions options) {
  const std::string bytes = model_of(inputs).bytes();
  Opened result;
  options.open_ranges = true;
  options.taken = &result.taken;
  const auto graph = import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "", options);
  if (!graph.ok()) {
    result.error = graph.status().message();
    return result;
  }
  const size_t count = graph->inputs.size() - (graph->varying.any() ? 1 : 0);
  for (size_t i = 0; i < count; ++i)
    result.shapes += to_string(graph->value(graph->inputs[i]).shape);
  for (const SizeSymbol& symbol : graph->varying.symbols)
    result.symbols += fmt::format("{} {}..{};", symbol.name, symbol.min, symbol.max);
  return result;
}

TEST(open_shapes, symbols_of_the_file_tie_inputs_together) {
  const Opened both =
      opened({{"batch", "seq"}, {"batch", "seq"}}, {.ranges = {{"seq", {{1, 9, ""}}}}});
  EXPECT_EQ(both.shapes, "[8, 9][8, 9]") << both.error;
  EXPECT_EQ(both.symbols, "batch 1..8;seq 1..9;");
  EXPECT_EQ(both.taken,
            "m.onnx: open dimensions are batch 1..8; another range: --shape batch=1..16");
  // What one input's shape says holds for the other.
  const Opened one = opened({{"batch", "seq"}, {"batch", "seq"}}, {.shapes = {{"x", {2, 7}}}});
  EXPECT_EQ(one.shapes, "[2, 7][2, 7]") << one.error;
  EXPECT_EQ(one.symbols, "");
}

TEST(open_shapes, dimensions_without_a_name_are_taken_by_their_place) {
  const Opened open =
      opened({{"?", "p2o.DynamicDimension.0"}, {"unk__3", "4", "p2o.DynamicDimension.1"}}, {});
  EXPECT_EQ(open.shapes, "[8, 512][8, 4, 512]") << open.error;
  EXPECT_EQ(open.symbols, "batch 1..8;sequence 1..512;");
}

TEST(open_shapes, the_advice_for_dimensions_without_a_name_works) {
  const std::vector<std::vector<std::string>> inputs = {{"?", "?"}, {"unk__3", "4", "?"}};
  const Opened ruled = opened(inputs, {});
  EXPECT_EQ(ruled.taken,
            "m.onnx: open dimensions are batch 1..8, sequence 1..512; another range: --shape "
            "batch=1..16");
  const Opened advised =
      opened(inputs, {.ranges = {{"batch", {{1, 16, ""}}}, {"sequence", {{1, 9, ""}}}}});
  EXPECT_EQ(advised.shapes, "[16, 9][16, 4, 9]") << advised.error;
  EXPECT_EQ(advised.taken, "");
  // Names without a meaning are none, and neither is one of the rule where options decide all.
  EXPECT_EQ(opened(inputs, {.ranges = {{"unk__3", {{1, 9, ""}}}}}).error,
            "m.onnx: a shape is given for 'unk__3', which is no input: the inputs are 'x', 'y', "
            "the symbols 'batch', 'sequence'");
  EXPECT_EQ(
      opened({{"?", "?"}}, {.shapes = {{"x", {2, 3}}}, .ranges = {{"batch", {{1, 9, ""}}}}}).error,
      "m.onnx: a shape is given for 'batch', which is no input: the inputs are 'x'");
}

TEST(open_shapes, names_with_spaces_and_large_numbers) {
  const Opened spaces = opened({{"batch", "seq len"}, {"batch", "seq len + 2"}},
                               {.ranges = {{"seq len", {{1, 6, ""}}}}});
  EXPECT_EQ(spaces.shapes, "[8, 6][8, 8]") << spaces.error;
  EXPECT_EQ(spaces.symbols, "batch 1..8;seq len 1..6;");
  const std::string large = "past + 99999999999999999999";
  const Opened whole = opened({{"batch", large}}, {.ranges = {{large, {{1, 6, ""}}}}});
  EXPECT_EQ(whole.shapes, "[8, 6]") << whole.error;
}

TEST(open_shapes, every_symbol_has_to_be_told_by_an_input) {
  EXPECT_EQ(opened({{"batch", "past + seq"}}, {}).error,
            "m.onnx: dimension 1 of input 'x' is a sum that does not tell 'past', 'seq', and no "
            "other input does: give 'past' a number (--shape past=16)");
  EXPECT_EQ(opened({{"batch", "seq + seq"}}, {}).error,
            "m.onnx: dimension 1 of input 'x' is a sum that does not tell 'seq', and no other "
            "input does: give 'seq' a number (--shape seq=16)");
  const Opened one = opened({{"batch", "past + seq"}}, {.ranges = {{"past", {{16, 16, ""}}}}});
  EXPECT_EQ(one.shapes, "[8, 528]") << one.error;
}

TEST(open_shapes, sums_of_symbols_are_extents) {
  const Opened open = opened({{"batch", "past_len"}, {"batch", "past_len + seq"}},
                             {.ranges = {{"past_len", {{0, 6, ""}}}, {"seq", {{1, 3, ""}}}}});
  EXPECT_EQ(open.shapes, "[8, 6][8, 9]") << open.error;
  EXPECT_EQ(open.symbols, "batch 1..8;past_len 0..6;seq 1..3;");
}

TEST(open_shapes, symbols_of_the_user) {
  const Opened open = opened({{"1", "4"}, {"1", "5"}}, {.ranges = {{"x", {{0, 0, "n"}, {4, 4, ""}}},
                                                                   {"y", {{0, 0, "n"}, {5, 5, ""}}},
                                                                   {"n", {{1, 6, ""}}}}});
  EXPECT_EQ(open.shapes, "[6, 4][6, 5]") << open.error;
  EXPECT_EQ(open.symbols, "n 1..6;");
}

TEST(open_shapes, a_symbol_that_no_dimension_has) {
  const std::vector<std::vector<std::string>> inputs = {{"batch", "seq", "8"}};
  const ShapeRange misspelt = {{1, 4, ""}, {0, 0, "sqe"}, {8, 8, ""}};
  EXPECT_EQ(opened(inputs, {.ranges = {{"x", misspelt}, {"seq", {{1, 4, ""}}}}}).error,
            "m.onnx: a range is given for 'seq', which no open dimension has: the symbols are "
            "'batch', 'sqe'; did you mean 'sqe'?");
  EXPECT_EQ(opened(inputs, {.shapes = {{"x", {4, 3, 8}}}, .ranges = {{"seq", {{1, 4, ""}}}}}).error,
            "m.onnx: a range is given for 'seq', which no open dimension has, as there is none");
  // One of the user's own is no error; without a range the line about it says that it is one.
  EXPECT_EQ(opened(inputs, {.ranges = {{"x", misspelt}}}).taken,
            "m.onnx: open dimensions are sqe 1..512; another range: --shape sqe=1..1024; the file "
            "does not have 'sqe', its symbols are 'batch', 'seq'; did you mean 'seq'?");
  EXPECT_EQ(opened(inputs, {.ranges = {{"x", misspelt}, {"sqe", {{1, 4, ""}}}}}).taken, "");
}

TEST(open_shapes, the_rule_ends_where_the_model_does) {
  TestModel model;
  std::string taken;
  model.open_input("x", {"batch", "seq", "2"})
      .constant("table", Tensor(DType::kF32, {100, 2}))
      .constant("zero", ints({0}))
      .constant("one", ints({1}))
      .node("Shape", {"x"}, {"shape"}, {{"start", int64_t{1}}, {"end", int64_t{2}}})
      .node("Slice", {"table", "zero", "shape", "zero"}, {"positions"})
      .node("Add", {"x", "positions"}, {"y"})
      .output("y");
  const std::string bytes = model.bytes();
  const auto graph = import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "",
                                       {.open_ranges = true, .taken = &taken});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->value(graph->inputs[0]).shape, (Shape{8, 64, 2}));
  EXPECT_EQ(
      taken,
      "m.onnx: open dimensions are batch 1..8, seq 1..64; another range: --shape batch=1..16");
}

TEST(open_shapes, no_longer_range_is_advised_where_the_model_takes_none) {
  TestModel model;
  std::string taken;
  model.open_input("audio", {"1", "samples"})
      .constant("table", Tensor(DType::kF32, {100}))
      .constant("zero", ints({0}))
      .node("Shape", {"audio"}, {"shape"}, {{"start", int64_t{1}}})
      .node("Slice", {"table", "zero", "shape"}, {"part"})
      .node("Add", {"audio", "part"}, {"y"})
      .output("y");
  const std::string bytes = model.bytes();
  const auto imported = [&](ImportOptions options) {
    options.open_ranges = true;
    options.taken = &taken;
    return import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "", options);
  };
  ASSERT_TRUE(imported({}).ok());
  EXPECT_EQ(taken, "m.onnx: open dimensions are samples 1..64; one size: --shape samples=64");
  const auto advised = imported({.ranges = {{"samples", {{64, 64, ""}}}}});
  EXPECT_TRUE(advised.ok()) << advised.status().message();
}

TEST(open_shapes, the_batch_is_one_where_the_model_needs_that) {
  TestModel model;
  std::string taken;
  model.open_input("x", {"batch", "4"})
      .constant("shape", ints({2, 2}))
      .node("Reshape", {"x", "shape"}, {"y"})
      .output("y");
  const std::string bytes = model.bytes();
  const auto graph = import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "",
                                       {.open_ranges = true, .taken = &taken});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->value(graph->inputs[0]).shape, (Shape{1, 4}));
  EXPECT_EQ(taken, "m.onnx: open dimensions are batch 1..1");
}

TEST(open_shapes, sides_of_images_have_to_be_given) {
  EXPECT_EQ(opened({{"N", "3", "H", "W"}}, {}).error,
            "m.onnx: input 'x' has the open shape [N, 3, H, W]: give its shape "
            "(ModelOptions::shapes, such as --shape x=1x3x224x224, or ModelOptions::ranges, such "
            "as --shape x=1..8x3x160..224x160..224)");
}

TEST(open_shapes, the_advice_for_images_shows_what_options_give) {
  const std::vector<std::vector<std::string>> inputs = {{"N", "M1", "M2", "3"}, {"4", "M2"}};
  ImportOptions options = {.ranges = {{"M1", {{24, 240, ""}}}, {"N", {{2, 2, ""}}}}};
  EXPECT_EQ(opened(inputs, options).error,
            "m.onnx: input 'x' has the open shape [N, M1, M2, 3]: give its shape "
            "(ModelOptions::shapes, such as --shape x=2x240x224x3, or ModelOptions::ranges, such "
            "as --shape x=2x24..240x160..224x3)");
  options.ranges["x"] = {{2, 2, ""}, {24, 240, ""}, {160, 224, ""}, {3, 3, ""}};
  const Opened advised = opened(inputs, options);
  EXPECT_EQ(advised.shapes, "[2, 240, 224, 3][4, 224]") << advised.error;
  // A number that the shape of another input gives.
  EXPECT_NE(opened(inputs, {.shapes = {{"y", {4, 80}}}}).error.find("x=1..8x160..224x80x3)"),
            std::string::npos);
}

TEST(open_shapes, the_advice_for_images_ties_batches_without_a_name) {
  const std::vector<std::vector<std::string>> inputs = {{"?", "3", "?", "?"}, {"?", "16"}};
  EXPECT_EQ(opened(inputs, {}).error,
            "m.onnx: input 'x' has the open shape [?, 3, ?, ?]: give its shape "
            "(ModelOptions::shapes, such as --shape x=1x3x224x224, or ModelOptions::ranges, such "
            "as --shape x=batch,3,160..224,160..224)");
  const ShapeRange advice = {{0, 0, "batch"}, {3, 3, ""}, {160, 224, ""}, {160, 224, ""}};
  const Opened advised = opened(inputs, {.ranges = {{"x", advice}}});
  EXPECT_EQ(advised.shapes, "[8, 3, 224, 224][8, 16]") << advised.error;
  EXPECT_EQ(advised.symbols, "batch 1..8;x.2 160..224;x.3 160..224;");
  const Opened less = opened(inputs, {.ranges = {{"x", advice}, {"batch", {{1, 2, ""}}}}});
  EXPECT_EQ(less.shapes, "[2, 3, 224, 224][2, 16]") << less.error;
}

TEST(open_shapes, sides_before_the_channels_have_to_be_given) {
  EXPECT_EQ(opened({{"N", "M1", "M2", "3"}}, {}).error,
            "m.onnx: input 'x' has the open shape [N, M1, M2, 3]: give its shape "
            "(ModelOptions::shapes, such as --shape x=1x224x224x3, or ModelOptions::ranges, such "
            "as --shape x=1..8x160..224x160..224x3)");
  // Frames of as many frequencies each are a sequence.
  EXPECT_EQ(opened({{"N", "M1", "64", "1"}}, {}).shapes, "[8, 512, 64, 1]");
  // What the names call a sequence is one, and many channels are none of an image.
  EXPECT_EQ(opened({{"N", "seq", "W", "3"}}, {.ranges = {{"W", {{8, 8, ""}}}}}).shapes,
            "[8, 512, 8, 3]");
  EXPECT_EQ(opened({{"N", "K", "W", "16"}}, {.ranges = {{"W", {{8, 8, ""}}}}}).shapes,
            "[8, 512, 8, 16]");
  EXPECT_EQ(opened({{"N", "seq", "12", "4"}}, {}).shapes, "[8, 512, 12, 4]");
  EXPECT_EQ(opened({{"N", "8", "8", "3"}}, {}).shapes, "[8, 8, 8, 3]");
}

TEST(open_shapes, tells_what_is_wrong) {
  const std::vector<std::vector<std::string>> inputs = {{"batch", "seq"}, {"batch", "seq"}};
  const std::pair<ImportOptions, std::string> cases[] = {
      {{.ranges = {{"sqe", {{1, 9, ""}}}}},
       "m.onnx: a shape is given for 'sqe', which is no input: the inputs are 'x', 'y', the symbols "
       "'batch', 'seq'; did you mean 'seq'?"},
      {{.ranges = {{"seq", {{1, 9, ""}, {1, 2, ""}}}}},
       "m.onnx: 'seq' is a symbol, found 2 extents, expected one range such as 1..8"},
      {{.ranges = {{"seq", {{9, 1, ""}}}}},
       "m.onnx: 'seq' has the range 9..1, expected the smallest size, at least 0, before the "
       "largest"},
      {{.ranges = {{"x", {{1, 9, ""}}}}},
       "m.onnx: 1 extents are given for input 'x', which has 2 dimensions"},
      {{.ranges = {{"x", {{1, 2, ""}, {1, 9, ""}}}, {"y", {{1, 2, ""}, {1, 8, ""}}}}},
       "m.onnx: 'seq' is 1..8 in input 'y' and 1..9 elsewhere, and has one range"},
  };
  for (const auto& [options, message] : cases) EXPECT_EQ(opened(inputs, options).error, message);
}

// What to give instead is said as it can be given.
TEST(open_shapes, advice_names_what_can_be_given) {
  const auto advice = [](const std::vector<std::string>& extents, const ImportOptions& options) {
    TestModel model;
    model.open_input("x", extents)
        .constant("shape", ints({4, 12}))
        .node("Reshape", {"x", "shape"}, {"y"})
        .output("y");
    const std::string bytes = model.bytes();
    const auto graph = import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "", options);
    return graph.ok() ? "" : graph.status().message();
  };
  const ImportOptions options = {.ranges = {{"x", {{1, 8, ""}, {12, 12, ""}, {3, 5, "rest"}}}}};
  const std::string nameless = advice({"?", "12", "?"}, options);
  EXPECT_NE(nameless.find("as --shape x=1..4x12x3..5"), std::string::npos) << nameless;
  const std::string named = advice({"batch", "12", "?"}, options);
  EXPECT_NE(named.find("as --shape batch=1..4"), std::string::npos) << named;
}

// Exports of graph networks name a dimension after its input.
TEST(open_shapes, the_advice_for_a_symbol_with_the_name_of_an_input_works) {
  const std::vector<std::vector<std::string>> inputs = {{"x", "8"}, {"2", "y"}};
  const Opened ruled = opened(inputs, {});
  EXPECT_EQ(ruled.taken,
            "m.onnx: open dimensions are x 1..8, y 1..512; another range: --shape x=1..16x8");
  const Opened advised = opened(inputs, {.ranges = {{"x", {{1, 16, ""}, {8, 8, ""}}}}});
  EXPECT_EQ(advised.shapes, "[16, 8][2, 512]") << advised.error;
}

// The window of a convolution may be longer than the shortest sequence, or than all of the rule.
TEST(open_shapes, ranges_begin_where_the_model_is_valid) {
  const auto imported = [](int64_t window, std::string& taken) {
    TestModel model;
    model.open_input("x", {"2", "1", "samples"}).constant("w", Tensor(DType::kF32, {1, 1, window}));
    const std::string bytes = model.node("Conv", {"x", "w"}, {"y"}).output("y").bytes();
    return import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "",
                             {.open_ranges = true, .taken = &taken});
  };
  std::string taken;
  ASSERT_TRUE(imported(60, taken).ok());
  EXPECT_EQ(taken,
            "m.onnx: samples is 60..512, as the model is not valid at fewer; more may be valid, "
            "as 1024 is: --shape samples=60..1024");
  const Result<Graph> graph = imported(400, taken);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(taken,
            "m.onnx: samples is 400..4096, as the model is not valid at fewer; more may be valid, "
            "as 8192 is: --shape samples=400..8192");
  EXPECT_EQ(to_string(graph->value(graph->inputs[0]).shape), "[2, 1, 4096]");
  // 128..512 begins with less than the window.
  ASSERT_TRUE(imported(230, taken).ok());
  EXPECT_EQ(taken,
            "m.onnx: samples is 230..640, as the model is not valid at fewer; more may be valid, "
            "as 1280 is: --shape samples=230..1280");
  EXPECT_FALSE(imported(9000, taken).ok());
  EXPECT_EQ(taken,
            "m.onnx: open dimensions are samples 1..512; another range: --shape "
            "samples=1..1024");
}

// Operators that take elements by constants need as many as these say.
TEST(open_shapes, ranges_begin_with_what_constants_need) {
  const auto taken_of = [](const std::vector<std::string>& extents, const std::string& type,
                           const Tensor& constant, int64_t axis) {
    TestModel model;
    model.open_input("x", extents).open_input("z", {extents[0], "other"}).constant("c", constant);
    model.node(type, {"x", "c"}, {"y"}, {{"axis", axis}}).node("Relu", {"z"}, {"w"});
    const std::string bytes = model.output("y").output("w").bytes();
    std::string taken;
    const Result<Graph> graph = import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "",
                                                  {.open_ranges = true, .taken = &taken});
    return graph.ok() ? taken : graph.status().message();
  };
  const auto said = [](std::string_view rule, std::string_view range, std::string_view another) {
    return fmt::format(
        "m.onnx: open dimensions are {}; m.onnx: {}, as the model is not valid at fewer; more may be "
        "valid, as {} is: --shape {}",
        rule, range, another.substr(another.rfind('.') + 1), another);
  };
  const auto ruled = [&](std::string_view range, std::string_view another) {
    return said("batch 1..8, other 1..512; another range: --shape batch=1..16", range, another);
  };
  const std::vector<std::string> rows = {"batch", "seq"};
  EXPECT_EQ(taken_of(rows, "TopK", ints({3}), 1), ruled("seq is 3..512", "seq=3..1024"));
  EXPECT_EQ(taken_of(rows, "TopK", ints({100}), 1), ruled("seq is 100..512", "seq=100..1024"));
  EXPECT_EQ(taken_of(rows, "TopK", ints({600}), 1), ruled("seq is 600..4096", "seq=600..8192"));
  EXPECT_EQ(taken_of(rows, "Gather", ints({5, 2}), 1), ruled("seq is 6..512", "seq=6..1024"));
  EXPECT_EQ(taken_of({"seq", "batch"}, "TopK", ints({20}), 0),
            ruled("seq is 20..512", "seq=20..1024"));
  const auto batches = [&](std::string_view range, std::string_view another) {
    return said("other 1..512; another range: --shape other=1..1024", range, another);
  };
  const std::vector<std::string> table = {"batch", "4"};
  EXPECT_EQ(taken_of(table, "TopK", ints({3}), 0), batches("batch is 3..8", "batch=3..16"));
  EXPECT_EQ(taken_of(table, "TopK", ints({10}), 0), batches("batch is 10..32", "batch=10..64"));
  EXPECT_EQ(taken_of(table, "Gather", ints({2, -4}), 0), batches("batch is 4..8", "batch=4..16"));
}

// Operators that combine elements of two inputs need as many of both.
TEST(open_shapes, symbols_are_equal_where_the_model_needs_that) {
  const auto taken_of = [](const std::vector<std::vector<std::string>>& extents,
                           const std::map<std::string, ShapeRange>& ranges) {
    TestModel model;
    model.open_input("x", extents[0]).open_input("z", extents[1]).node("Add", {"x", "z"}, {"y"});
    const std::string bytes = model.output("y").bytes();
    std::string taken;
    const Result<Graph> graph =
        import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "",
                          {.ranges = ranges, .open_ranges = true, .taken = &taken});
    if (!graph.ok()) return graph.status().message();
    EXPECT_EQ(graph->varying.symbols.size(), extents[0][1] == "8" ? 1U : 2U);
    return taken;
  };
  EXPECT_EQ(taken_of({{"m", "8"}, {"n", "8"}}, {}),
            "m.onnx: open dimensions are m 1..8; another range: --shape m=1..16; m.onnx: 'n' is "
            "equal to 'm', as the model is not valid otherwise");
  EXPECT_EQ(taken_of({{"batch", "text"}, {"batch", "next"}}, {}),
            "m.onnx: open dimensions are batch 1..8, text 1..512; another range: --shape "
            "batch=1..16; m.onnx: 'next' is equal to 'text', as the model is not valid otherwise");
  EXPECT_EQ(taken_of({{"enc.len", "8"}, {"dec.len", "8"}}, {}),
            "m.onnx: open dimensions are enc.len 1..512; another range: --shape enc.len=1..1024; "
            "m.onnx: 'dec.len' is equal to 'enc.len', as the model is not valid otherwise");
  // An option says the same.
  const ShapeRange equal = {{0, 0, "m"}}, by_letters = {{0, 0, "te"}, {0, 0, "t"}};
  EXPECT_EQ(taken_of({{"m", "8"}, {"n", "8"}}, {{"n", equal}, {"m", {{1, 4, ""}}}}), "");
  EXPECT_EQ(taken_of({{"batch", "text"}, {"batch", "next"}}, {{"next", by_letters}}),
            "m.onnx: open dimensions are batch 1..8, text 1..512; another range: --shape "
            "batch=1..16");
  const ShapeRange with_number = {{0, 0, "ma"}, {2, 2, ""}};  // of --shape n=max2
  EXPECT_EQ(taken_of({{"max2", "8"}, {"n", "8"}}, {{"n", with_number}, {"max2", {{1, 4, ""}}}}),
            "");
  const ShapeRange range = {{1, 4, ""}};
  const std::string refused = taken_of({{"m", "8"}, {"n", "8"}}, {{"n", range}, {"m", range}});
  EXPECT_NE(refused.find("give ranges within which the model is valid, and extents that are always "
                         "equal one symbol (--shape n=m)"),
            std::string::npos)
      << refused;
  EXPECT_EQ(taken_of({{"m", "8"}, {"n", "8"}}, {{"n", equal}, {"m", {{0, 0, "n"}}}}),
            "m.onnx: 'm' is equal to 'n', expected a symbol that is equal to no other");
}

// Of several symbols with one range those are equal that have to be.
TEST(open_shapes, only_symbols_that_have_to_be_equal_are) {
  TestModel model;
  model.open_input("a", {"k", "8"}).open_input("b", {"m", "8"}).open_input("c", {"p", "8"});
  model.open_input("d", {"n", "8"}).open_input("e", {"q", "8"});
  model.node("Add", {"b", "d"}, {"y"}).node("Sub", {"c", "e"}, {"z"}).node("Neg", {"a"}, {"w"});
  const std::string bytes = model.output("y").output("z").output("w").bytes();
  std::string taken;
  const auto imported = [&](const std::map<std::string, ShapeRange>& ranges) {
    return import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "",
                             {.ranges = ranges, .open_ranges = true, .taken = &taken});
  };
  const Result<Graph> graph = imported({});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->varying.symbols.size(), 3U);
  EXPECT_EQ(taken,
            "m.onnx: open dimensions are k 1..8, m 1..8, p 1..8; another range: --shape k=1..16; "
            "m.onnx: 'n' is equal to 'm', as the model is not valid otherwise; m.onnx: 'q' is "
            "equal to 'p', as the model is not valid otherwise");
  // Symbols of options stay, and the message names those that have to be equal.
  const ShapeRange range = {{1, 4, ""}};
  const Result<Graph> refused =
      imported({{"k", range}, {"m", range}, {"n", range}, {"p", range}, {"q", range}});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("equal one symbol (--shape n=m --shape q=p)"),
            std::string::npos)
      << refused.status().message();
  // Where an option gives one of two a range, the other one gets it.
  EXPECT_TRUE(imported({{"n", {{1, 8, ""}}}}).ok());
  EXPECT_NE(taken.find("'m' is equal to 'n', as"), std::string::npos) << taken;
}

TEST(open_shapes, symbols_of_options_may_be_equal) {
  TestModel model;
  model.open_input("x", {"?", "8"}).open_input("z", {"?", "8"}).node("Add", {"x", "z"}, {"y"});
  const std::string bytes = model.output("y").bytes();
  const ShapeRange j = {{0, 0, "j"}, {8, 8, ""}}, k = {{0, 0, "k"}, {8, 8, ""}};
  const Result<Graph> graph = import_onnx_bytes(
      bytes.data(), bytes.size(), "m.onnx", "",
      {.ranges = {{"x", j}, {"z", k}, {"j", {{1, 4, ""}}}, {"k", {{0, 0, "j"}}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->varying.symbols.size(), 1U);
}

// The file's number of an input's first extent is no batch where that stays, and another input of
// as many rows has nothing to do with it.
TEST(open_shapes, a_number_that_stays_is_no_batch) {
  TestModel model;
  model.open_input("x", {"2", "n"}).open_input("z", {"m", "4"}).input("v", {1, 2, 2});
  model.constant("square", ints({2, 2})).node("Reshape", {"v", "square"}, {"y"}).output("y");
  model.node("Neg", {"x"}, {"a"}).node("Neg", {"z"}, {"b"}).output("a").output("b");
  const std::string bytes = model.bytes();
  const ShapeRange wide = {{2, 2, ""}, {1, 3, ""}};
  const Result<Graph> graph =
      import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "",
                        {.ranges = {{"x", wide}, {"m", {{1, 2, ""}}}}, .open_ranges = true});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(to_string(graph->value(graph->outputs[0]).shape), "[2, 2]");
}

// A range of the user's stays.
TEST(open_shapes, ranges_of_options_do_not_begin_later) {
  TestModel model;
  model.open_input("x", {"batch", "seq"}).constant("k", ints({3}));
  const std::string bytes =
      model.node("TopK", {"x", "k"}, {"y"}, {{"axis", int64_t{1}}}).output("y").bytes();
  const Result<Graph> graph =
      import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "",
                        {.ranges = {{"seq", {{2, 9, ""}}}}, .open_ranges = true});
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("(TopK): k is 3 of 2 elements; this is so at batch=8, "
                                          "seq=2, but not at the largest sizes"),
            std::string::npos)
      << graph.status().message();
}

// One block of 256 samples with at most 384 of the one before it.
TEST(open_shapes, one_size_is_advised_where_the_model_takes_one_block) {
  TestModel model;
  model.open_input("x", {"2", "1", "samples"})
      .constant("w", Tensor(DType::kF32, {1, 1, 256}))
      .constant("shape", ints({2}))
      .node("Conv", {"x", "w"}, {"blocks"}, {{"strides", Shape{512}}})
      .node("Reshape", {"blocks", "shape"}, {"y"})
      .output("y");
  const std::string bytes = model.bytes();
  std::string taken;
  const auto imported = [&](ImportOptions options) {
    options.open_ranges = true;
    options.taken = &taken;
    return import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "", options);
  };
  const Result<Graph> graph = imported({});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(to_string(graph->value(graph->inputs[0]).shape), "[2, 1, 640]");
  EXPECT_EQ(taken,
            "m.onnx: samples is 256..640, as the model is not valid at fewer, nor at up to 1280; "
            "one size: --shape samples=640");
  const auto advised = imported({.ranges = {{"samples", {{640, 640, ""}}}}});
  EXPECT_TRUE(advised.ok()) << advised.status().message();
}

// Without a name, the second extent of an input may be a sequence or, in a state, the batch.
TEST(open_shapes, states_have_the_batch_where_the_model_is_not_valid_otherwise) {
  TestModel model;
  model.open_input("x", {"", "16"}).open_input("state", {"2", "", "16"});
  model.node("Add", {"x", "state"}, {"y"}).output("y");
  const std::string bytes = model.bytes();
  std::string taken;
  const Result<Graph> graph = import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "",
                                                {.open_ranges = true, .taken = &taken});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(to_string(graph->value(graph->inputs[1]).shape), "[2, 8, 16]");
  EXPECT_EQ(graph->varying.symbols.size(), 1U);
  EXPECT_EQ(taken, "m.onnx: open dimensions are batch 1..8; another range: --shape batch=1..16");
}

}  // namespace
}  // namespace hone::graph
