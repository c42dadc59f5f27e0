// Operators along extents that vary: recurrent nets, windows, resizing, norms, heads of detectors.
#include "hone/base/round_up.h"
#include "hone/graph/size_check.h"

namespace hone::graph {
namespace {

Tensor one_number(int64_t number) {
  Tensor tensor(DType::kI64, {1});
  tensor.set(0, static_cast<double>(number));
  return tensor;
}

TEST(size_ops, steps_of_recurrent_nets) {
  Rng rng(7);
  for (const auto& [type, gates] :
       {std::pair<std::string, int64_t>{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}}) {
    for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
      for (const int64_t layout : {0, 1}) {
        if (layout == 1 && direction == "forward") continue;
        SCOPED_TRACE(fmt::format("{} {} {}", type, direction, layout));
        const int64_t directions = direction == "bidirectional" ? 2 : 1;
        std::vector<std::string> results = {"y", "h"};
        if (type == "LSTM") results.emplace_back("c");
        TestModel model;
        const std::vector<std::string> steps = {"seq", "batch", "3"}, rows = {"batch", "seq", "3"};
        model.open_input("x", layout == 0 ? steps : rows)
            .constant("w", random_tensor({directions, gates * 2, 3}, rng))
            .constant("r", random_tensor({directions, gates * 2, 2}, rng))
            .constant("b", random_tensor({directions, gates * 4}, rng))
            .node(type, {"x", "w", "r", "b"}, results,
                  {{"direction", direction}, {"hidden_size", int64_t{2}}, {"layout", layout}});
        for (const std::string& result : results) model.output(result);
        std::vector<std::vector<int64_t>> sizes = {{4, 3}, {1, 1}, {4, 1}, {1, 3}, {3, 2}};
        for (std::vector<int64_t>& size : sizes) {
          if (layout == 1) std::swap(size[0], size[1]);
        }
        expect_right(model, {{"batch", {{1, 3, ""}}}, {"seq", {{1, 4, ""}}}}, sizes);
      }
    }
  }
}

// Rows that the model itself says are shorter than the run's sequence.
TEST(size_ops, rows_of_a_recurrent_net_that_end_earlier) {
  Rng rng(8);
  TestModel model;
  model.open_input("x", {"seq", "2", "3"})
      .constant("w", random_tensor({1, 8, 3}, rng))
      .constant("r", random_tensor({1, 8, 2}, rng))
      .constant("lengths",
                [] {
                  Tensor lengths(DType::kI32, {2});
                  lengths.set(0, 1);
                  lengths.set(1, 2);
                  return lengths;
                }())
      .node("LSTM", {"x", "w", "r", "", "lengths"}, {"y", "h", "c"},
            {{"direction", std::string("reverse")}, {"hidden_size", int64_t{2}}})
      .output("y")
      .output("h")
      .output("c");
  expect_right(model, {{"seq", {{2, 5, ""}}}}, {{5}, {2}, {3}});
}

// Also where the padding is longer than what a run has.
TEST(size_ops, padding_that_repeats_elements) {
  for (const std::string mode : {"reflect", "edge", "wrap"}) {
    SCOPED_TRACE(mode);
    TestModel model(19);
    model.open_input("x", {"N", "2", "h", "w"})
        .constant("pads", ints({0, 0, 1, 3, 0, 0, 2, 1}))
        .node("Pad", {"x", "pads"}, {"y"}, {{"mode", mode}})
        .output("y");
    expect_right(model, {{"N", {{1, 2, ""}}}, {"h", {{1, 5, ""}}}, {"w", {{2, 7, ""}}}},
                 {{2, 5, 7}, {1, 1, 2}, {2, 2, 5}, {1, 4, 3}});
  }
}

// Sound that is padded to whole frames before each stride, by floating-point numbers.
TEST(size_ops, padding_to_a_multiple) {
  for (const std::string mode : {"constant", "reflect"}) {
    SCOPED_TRACE(mode);
    TestModel model;
    model.open_input("x0", {"1", "2", "samples"})
        .constant("two", one_number(2))
        .constant("none", ints({0, 0}));
    for (int i = 0; i < 3; ++i) {
      const int64_t stride = std::vector<int64_t>{4, 8, 5}[static_cast<size_t>(i)];
      const auto name = [&](const std::string& text) { return text + std::to_string(i); };
      const std::string x = name("x"), length = name("length"), pads = name("pads");
      model.node("Shape", {x}, {name("shape")})
          .constant(name("stride"), floats({1}, {static_cast<float>(stride)}))
          .constant(name("overlap"), one_number(stride))
          .node("Gather", {name("shape"), "two"}, {length})
          .node("Cast", {length}, {name("number")}, {{"to", int64_t{1}}})
          .node("Div", {name("number"), name("stride")}, {name("frames")})
          .node("Ceil", {name("frames")}, {name("whole")})
          .node("Mul", {name("whole"), name("stride")}, {name("ideal")})
          .node("Sub", {name("ideal"), name("number")}, {name("missing")})
          .node("Cast", {name("missing")}, {name("extra")}, {{"to", int64_t{7}}})
          .node("Concat", {"none", name("overlap"), "none", name("extra")}, {pads},
                {{"axis", int64_t{0}}})
          .node("Pad", {x, pads}, {name("padded")}, {{"mode", mode}})
          .node("AveragePool", {name("padded")}, {"x" + std::to_string(i + 1)},
                {{"kernel_shape", Shape{2 * stride}}, {"strides", Shape{stride}}});
    }
    model.output("padded0").output("padded2").output("x3");
    expect_right(model, {{"samples", {{300, 1000, ""}}}}, {{1000}, {300}, {641}, {961}});
  }
}

// Several roundings give what was seen at a few sizes.
TEST(size_ops, a_length_that_is_rounded_up_is_right_at_all_sizes) {
  struct Case {
    int64_t least, most, multiple;
  };
  for (const auto& [least, most, multiple] : std::vector<Case>{{8, 512, 16},
                                                               {64, 512, 128},
                                                               {256, 640, 160},
                                                               {256, 640, 320},
                                                               {1, 512, 160},
                                                               {1, 1000, 8},
                                                               {512, 4096, 160}}) {
    SCOPED_TRACE(fmt::format("{}..{} by {}", least, most, multiple));
    TestModel model(19);
    model.open_input("x", {"2", "samples"})
        .constant("second", ints({1}))
        .constant("none", ints({0}))
        .constant("multiple", ints({multiple}))
        .node("Shape", {"x"}, {"shape"})
        .node("Gather", {"shape", "second"}, {"length"})
        .node("Neg", {"length"}, {"negative"})
        .node("Mod", {"negative", "multiple"}, {"missing"})
        .node("Concat", {"none", "none", "none", "missing"}, {"pads"}, {{"axis", int64_t{0}}})
        .node("Pad", {"x", "pads"}, {"y"})
        .output("y");
    const auto graph = import_ranges(model, {{"samples", {{least, most, ""}}}});
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    const Shape largest = graph->value(graph->outputs[0]).shape;
    for (int64_t samples = least; samples <= most; ++samples) {
      const std::vector<int64_t> sizes = sizes_of(graph->varying, {samples});
      EXPECT_EQ(shape_of(graph->varying.outputs[0], largest, sizes)[1],
                round_up(samples, multiple));
    }
  }
}

// The first run has nothing but padding.
TEST(size_ops, padding_of_nothing) {
  TestModel model;
  model.open_input("x", {"N", "seq", "3"})
      .constant("one", ints({1}))
      .constant("end", ints({1 << 30}))
      .constant("pads", ints({0, 0, 0, 0, 1, 0}))
      .node("Slice", {"x", "one", "end", "one"}, {"rest"})
      .node("Pad", {"rest", "pads"}, {"y"})
      .output("y");
  expect_right(model, {{"N", {{1, 2, ""}}}, {"seq", {{1, 5, ""}}}}, {{2, 1}, {2, 5}, {1, 3}});
}

// A grid of the places of a run, as exporters write masks of attention.
TEST(size_ops, places_in_a_grid_of_what_varies) {
  const auto integer = [](int64_t value) {
    Tensor tensor(DType::kI64, {});
    tensor.set(0, static_cast<double>(value));
    return tensor;
  };
  TestModel model;
  model.open_input("x", {"N", "seq"})
      .constant("zero", integer(0))
      .constant("one", integer(1))
      .constant("of_rows", ints({1, 2}))
      .constant("of_columns", ints({0, 2}))
      .constant("single", ints({1}))
      .node("Shape", {"x"}, {"shape"})
      .node("Gather", {"shape", "zero"}, {"rows"})
      .node("Gather", {"shape", "one"}, {"columns"})
      .node("Range", {"zero", "rows", "one"}, {"row"})
      .node("Range", {"zero", "columns", "one"}, {"column"})
      .node("Unsqueeze", {"row", "of_rows"}, {"row_places"})
      .node("Unsqueeze", {"column", "of_columns"}, {"column_places"})
      .node("Concat", {"shape", "single"}, {"whole"}, {{"axis", int64_t{0}}})
      .node("Expand", {"row_places", "whole"}, {"all_rows"})
      .node("Expand", {"column_places", "whole"}, {"all_columns"})
      .node("Concat", {"all_rows", "all_columns"}, {"grid"}, {{"axis", int64_t{2}}})
      .node("GatherND", {"x", "grid"}, {"y"})
      .output("y");
  expect_right(model, {{"N", {{1, 3, ""}}}, {"seq", {{1, 7, ""}}}},
               {{3, 7}, {1, 1}, {2, 5}, {1, 7}});
}

TEST(size_ops, transposed_convolutions) {
  Rng rng(12);
  for (const auto& [kernel, stride, pad, extra] :
       {std::tuple<int64_t, int64_t, int64_t, int64_t>{2, 2, 0, 0},
        {4, 2, 1, 0},
        {3, 2, 1, 1},
        {5, 3, 2, 0}}) {
    for (const int64_t channels : {3, 9}) {  // few channels: phases are one convolution
      SCOPED_TRACE(fmt::format("kernel {} stride {} channels {}", kernel, stride, channels));
      TestModel model;
      model.open_input("x", {"N", "4", "h", "w"})
          .constant("weights", random_tensor({4, channels, kernel, kernel}, rng))
          .constant("bias", random_tensor({channels}, rng))
          .node("ConvTranspose", {"x", "weights", "bias"}, {"y"},
                {{"strides", Shape{stride, stride}},
                 {"pads", Shape{pad, pad, pad, pad}},
                 {"output_padding", Shape{extra, extra}}})
          .output("y");
      expect_right(model, {{"N", {{1, 2, ""}}}, {"h", {{2, 6, ""}}}, {"w", {{3, 5, ""}}}},
                   {{2, 6, 5}, {1, 2, 3}, {2, 5, 4}});
    }
  }
}

// At one element, phases of the results have nothing to read, or there are fewer of them.
TEST(size_ops, transposed_convolutions_of_short_sides) {
  Rng rng(12);
  for (const auto& [kernel, stride, pad] :
       {std::tuple<int64_t, int64_t, int64_t>{3, 3, 1}, {1, 2, 0}, {2, 3, 0}, {5, 3, 2}}) {
    SCOPED_TRACE(fmt::format("kernel {} stride {}", kernel, stride));
    TestModel model;
    model.open_input("x", {"N", "4", "h", "w"})
        .constant("weights", random_tensor({4, 9, kernel, 2}, rng))
        .constant("bias", random_tensor({9}, rng))
        .node("ConvTranspose", {"x", "weights", "bias"}, {"y"},
              {{"strides", Shape{stride, 2}}, {"pads", Shape{pad, 0, pad, 0}}})
        .output("y");
    expect_right(model, {{"N", {{1, 2, ""}}}, {"h", {{1, 6, ""}}}, {"w", {{1, 5, ""}}}},
                 {{2, 6, 5}, {1, 1, 1}, {2, 5, 4}});
  }
}

// Rows whose lengths are data, none and more than there are included, from states that are, too.
TEST(size_ops, rows_of_recurrent_nets_as_long_as_data_says) {
  Rng rng(9);
  for (const std::string direction : {"forward", "bidirectional"}) {
    SCOPED_TRACE(direction);
    const int64_t directions = direction == "forward" ? 1 : 2;
    const std::string many = std::to_string(directions);
    TestModel model;
    model.open_input("x", {"seq", "batch", "3"})
        .open_input("h0", {many, "batch", "2"})
        .open_input("c0", {many, "batch", "2"})
        .constant("w", random_tensor({directions, 8, 3}, rng))
        .constant("r", random_tensor({directions, 8, 2}, rng))
        .constant("three", floats({1}, {3}))
        .node("ReduceMean", {"x"}, {"m"}, {{"axes", Shape{0, 2}}, {"keepdims", int64_t{0}}})
        .node("Mul", {"m", "three"}, {"n"})
        .node("Abs", {"n"}, {"p"})
        .node("Cast", {"p"}, {"lengths"}, {{"to", int64_t{6}}})
        .node("LSTM", {"x", "w", "r", "", "lengths", "h0", "c0"}, {"y", "h", "c"},
              {{"direction", direction}, {"hidden_size", int64_t{2}}})
        .output("y")
        .output("h")
        .output("c");
    const auto graph = import_ranges(model, {{"batch", {{1, 3, ""}}}, {"seq", {{1, 4, ""}}}});
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    for (const auto& at : std::vector<std::vector<int64_t>>{{4, 3}, {1, 1}, {2, 3}, {3, 2}})
      SizeCheck{model, *graph, [](Rng& r) { return 6 * r.uniform() - 1; }}.at(at, at[0] == 3);
  }
}

TEST(size_ops, norms_along_what_varies) {
  Rng rng(9);
  TestModel model(21);
  model.open_input("x", {"N", "4", "h", "w"})
      .open_input("z", {"2", "seq", "3"})
      .constant("four", random_tensor({4}, rng))
      .constant("one", floats({1}, {1.5}))
      .constant("ones", floats({1, 1}, {1.5}))
      .node("InstanceNormalization", {"x", "four", "four"}, {"instance"})
      .node("GroupNormalization", {"x", "four", "four"}, {"group"}, {{"num_groups", int64_t{2}}})
      .node("MeanVarianceNormalization", {"x"}, {"variance"})
      .node("LpNormalization", {"z"}, {"lp"}, {{"axis", int64_t{1}}})
      .node("LRN", {"x"}, {"lrn"}, {{"size", int64_t{3}}})
      .node("LayerNormalization", {"z", "ones"}, {"layer"}, {{"axis", int64_t{1}}})
      .node("Hardmax", {"z"}, {"hard"}, {{"axis", int64_t{1}}});
  for (const char* name : {"instance", "group", "variance", "lp", "lrn", "layer", "hard"})
    model.output(name);
  expect_right(
      model, {{"h", {{2, 5, ""}}}, {"w", {{1, 4, ""}}}, {"N", {{1, 2, ""}}}, {"seq", {{1, 6, ""}}}},
      {{2, 5, 4, 6}, {1, 2, 1, 1}, {2, 3, 2, 5}});
}

// At one element it would be the scale of both.
TEST(size_ops, a_scale_that_varies_along_what_does_not_is_refused) {
  TestModel model(23);
  model.open_input("s", {"n"}).constant("x", floats({2}, {1, 2}));
  model.node("RMSNormalization", {"x", "s"}, {"y"}).output("y");
  const auto graph = import_ranges(model, {{"n", {{1, 2, ""}}}});
  EXPECT_EQ(graph.status().code(), Code::kUnsupported);
  EXPECT_NE(graph.status().message().find("operand 1, a parameter, varies along dimension 0"),
            std::string::npos)
      << graph.status().message();
}

// Padding that is another one at odd sizes, and windows that reach beyond the end.
TEST(size_ops, windows_that_begin_or_end_elsewhere) {
  Rng rng(10);
  TestModel model;
  const Attrs three = {{"kernel_shape", Shape{3, 3}}, {"strides", Shape{2, 2}}};
  const auto with = [&](Attrs more) {
    more.insert(more.end(), three.begin(), three.end());
    return more;
  };
  model.open_input("x", {"1", "2", "h", "w"}).constant("k", random_tensor({3, 2, 3, 3}, rng));
  std::vector<std::string> results;
  const auto add = [&](const std::string& type, const Attrs& attributes) {
    results.push_back(fmt::format("y{}", results.size()));
    std::vector<std::string> inputs = {"x"};
    if (type == "Conv") inputs.emplace_back("k");
    model.node(type, inputs, {results.back()}, with(attributes)).output(results.back());
  };
  for (const std::string mode : {"SAME_UPPER", "SAME_LOWER"}) {
    add("Conv", {{"auto_pad", mode}});
    add("MaxPool", {{"auto_pad", mode}});
    add("AveragePool", {{"auto_pad", mode}});
    add("AveragePool", {{"auto_pad", mode}, {"count_include_pad", int64_t{1}}});
  }
  for (const int64_t counts : {0, 1}) {
    add("AveragePool", {{"ceil_mode", int64_t{1}}, {"count_include_pad", counts}});
    add("AveragePool",
        {{"ceil_mode", int64_t{1}}, {"count_include_pad", counts}, {"pads", Shape{1, 1, 1, 1}}});
  }
  add("MaxPool", {{"ceil_mode", int64_t{1}}});
  expect_right(model, {{"h", {{4, 9, ""}}}, {"w", {{5, 8, ""}}}}, {{9, 8}, {4, 5}, {5, 6}, {8, 7}});
}

TEST(size_ops, resizing_by_any_factor_and_to_the_size_of_another) {
  Rng rng(11);
  const std::vector<std::string> coordinates = {"half_pixel", "pytorch_half_pixel", "align_corners",
                                                "asymmetric", "half_pixel_symmetric"};
  TestModel model(19);
  model.open_input("x", {"1", "2", "h", "w"})
      .open_input("like", {"1", "1", "h2", "w2"})
      .constant("scales", floats({4}, {1, 1, 1.5, 0.75}))
      .constant("two", floats({4}, {1, 1, 2, 2}))
      .constant("begin", ints({2}))
      .constant("end", ints({4}))
      .node("Shape", {"like"}, {"shape"}, {{"start", int64_t{2}}});
  for (const std::string mode : {"nearest", "linear", "cubic"}) {
    for (const std::string& where : coordinates) {
      const std::string name = mode + where;
      const Attrs attributes = {{"mode", mode}, {"coordinate_transformation_mode", where}};
      Attrs axes = attributes;
      axes.emplace_back("axes", Shape{2, 3});
      model.node("Resize", {"x", "", "scales"}, {name + "s"}, attributes)
          .node("Resize", {"x", "", "", "shape"}, {name + "z"}, axes)
          .output(name + "s")
          .output(name + "z");
    }
  }
  model.node("Resize", {"x", "", "two"}, {"twice"}, {{"mode", std::string("linear")}})
      .output("twice");
  expect_right(
      model, {{"h", {{2, 6, ""}}}, {"w", {{4, 9, ""}}}, {"h2", {{1, 7, ""}}}, {"w2", {{1, 5, ""}}}},
      {{6, 9, 7, 5}, {2, 4, 1, 1}, {3, 5, 7, 2}});
}

// Indices that a run does not have write nowhere; those from the end count from its end.
TEST(size_ops, scattered_elements) {
  TestModel model(18);
  const Attrs add = {{"reduction", std::string("add")}};
  model.open_input("x", {"n", "3"})
      .open_input("u", {"m", "3"})
      .open_input("p", {"m", "3"})
      .open_input("q", {"m", "1"})
      .constant("four", floats({}, {-4}))
      .node("Add", {"p", "four"}, {"from_end"})
      .node("Cast", {"p"}, {"places"}, {{"to", int64_t{7}}})
      .node("Cast", {"from_end"}, {"last_places"}, {{"to", int64_t{7}}})
      .node("Cast", {"q"}, {"rows"}, {{"to", int64_t{7}}})
      .node("ScatterElements", {"x", "places", "u"}, {"y0"})
      .node("ScatterElements", {"x", "last_places", "u"}, {"y1"}, add)
      .node("ScatterND", {"x", "rows", "u"}, {"y2"})
      .node("ScatterND", {"x", "rows", "u"}, {"y3"}, add)
      .constant("fixed", floats({5, 3}, std::vector<float>(15, 0.5f)))
      .node("Add", {"q", "four"}, {"q_from_end"})
      .node("Cast", {"q_from_end"}, {"last_rows"}, {{"to", int64_t{7}}})
      .node("ScatterElements", {"fixed", "last_places", "u"}, {"y4"}, add)
      .node("ScatterND", {"fixed", "last_rows", "u"}, {"y5"}, add);
  for (const char* name : {"y0", "y1", "y2", "y3", "y4", "y5"}) model.output(name);
  const auto graph = import_ranges(model, {{"n", {{4, 7, ""}}}, {"m", {{1, 5, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const auto numbers = [next = 0](Rng&) mutable {
    return static_cast<double>(7 * next++ % 53) / 14;
  };
  for (const auto& [n, m] : {std::pair(7, 5), {4, 1}, {5, 5}, {7, 2}})
    SizeCheck{model, *graph, numbers}.at({n, m}, n == 5);
}

// The maps of three strides as one list of cells, with the pyramid's map enlarged to the size of
// the one before it.
TestModel detector() {
  Rng rng(12);
  TestModel model;
  model.open_input("x", {"N", "3", "h", "w"})
      .constant("k0", random_tensor({4, 3, 3, 3}, rng))
      .constant("k1", random_tensor({4, 4, 3, 3}, rng))
      .constant("k2", random_tensor({4, 4, 3, 3}, rng))
      .constant("two", floats({4}, {1, 1, 2, 2}))
      .constant("flat", ints({0, 4, -1}))
      .constant("one", ints({1}));
  std::string last = "x";
  for (const int i : {0, 1, 2}) {
    const std::string next = fmt::format("m{}", i);
    model.node("Conv", {last, fmt::format("k{}", i)}, {next},
               {{"pads", Shape{1, 1, 1, 1}}, {"strides", Shape{2, 2}}});
    last = next;
  }
  model
      .node("Resize", {"m2", "", "two"}, {"up"},
            {{"mode", std::string("nearest")},
             {"coordinate_transformation_mode", std::string("asymmetric")},
             {"nearest_mode", std::string("floor")}})
      .node("Add", {"up", "m1"}, {"joined"});
  for (const std::string name : {"m0", "joined", "m2"})
    model.node("Reshape", {name, "flat"}, {name + "f"});
  model.node("Concat", {"m0f", "joinedf", "m2f"}, {"cells"}, {{"axis", int64_t{2}}})
      .node("Transpose", {"cells"}, {"rows"}, {{"perm", Shape{0, 2, 1}}})
      .node("TopK", {"cells", "one"}, {"best"}, {{"axis", int64_t{2}}})
      .output("rows")
      .output("best");
  return model;
}

TEST(size_ops, maps_of_several_strides_as_one_list) {
  const TestModel model = detector();
  expect_right(model, {{"N", {{1, 2, ""}}}, {"h", {{8, 24, ""}}}, {"w", {{16, 32, ""}}}},
               {{2, 3, 4}, {1, 1, 2}, {2, 2, 3}, {1, 3, 2}});
}

// The model is not valid at other sides.
TEST(size_ops, the_step_of_sides_is_found) {
  std::string taken;
  const auto graph = import_at(
      detector(), {.ranges = {{"N", {{1, 1, ""}}}, {"h", {{8, 24, ""}}}, {"w", {{16, 32, ""}}}},
                   .open_ranges = true,
                   .taken = &taken});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(step_of(graph->varying, 0), 8);
  EXPECT_EQ(graph->varying.symbols[1].max, 4);
  EXPECT_EQ(taken, "m.onnx: sides are multiples of 8, as the model is not valid at others");
}

// Tables that are repeated once for each row of a batch, which may have one row.
TEST(size_ops, repeats_that_may_be_one) {
  Rng rng(12);
  TestModel model;
  model.open_input("x", {"batch", "seq", "4"})
      .constant("table", random_tensor({1, 3, 4}, rng))
      .constant("rows", random_tensor({2, 4}, rng))
      .constant("first", one_number(0))
      .constant("second", one_number(1))
      .constant("one", one_number(1))
      .node("Shape", {"x"}, {"shape"})
      .node("Gather", {"shape", "first"}, {"batch"})
      .node("Gather", {"shape", "second"}, {"seq"})
      .node("Concat", {"batch", "one", "one"}, {"for_each"}, {{"axis", int64_t{0}}})
      .node("Concat", {"seq", "batch"}, {"for_both"}, {{"axis", int64_t{0}}})
      .node("Tile", {"table", "for_each"}, {"tables"})
      .node("Tile", {"rows", "for_both"}, {"many"})
      .output("tables")
      .output("many");
  expect_right(model, {{"batch", {{1, 3, ""}}}, {"seq", {{1, 4, ""}}}},
               {{3, 4}, {1, 1}, {1, 3}, {3, 1}, {2, 2}});
}

}  // namespace
}  // namespace hone::graph
