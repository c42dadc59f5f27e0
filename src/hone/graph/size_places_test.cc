// Operators that read or write at places, along extents that vary: regions, windows with indices,
// pads that follow from the sizes, the first and the last of equal elements.
#include <limits>

#include "hone/graph/size_check.h"

namespace hone::graph {
namespace {

constexpr int64_t kI32 = 6, kI64 = 7;  // ONNX's codes of types

// 0, 1, ... 4, so that many are equal.
double few_numbers(Rng& rng) { return std::floor(5 * rng.uniform()); }

TEST(size_places, regions_of_maps) {
  for (const std::string mode : {"avg", "max"}) {
    for (const int64_t ratio : {0, 2}) {
      SCOPED_TRACE(fmt::format("{} {}", mode, ratio));
      TestModel model;
      model.open_input("x", {"batch", "2", "h", "w"})
          .open_input("regions", {"n", "4"})
          .open_input("which", {"n"})
          .constant("corners", floats({4}, {-1, -2, 5, 6}))
          .node("Add", {"regions", "corners"}, {"boxes"})
          .node("Cast", {"which"}, {"maps"}, {{"to", kI64}})
          .node("RoiAlign", {"x", "boxes", "maps"}, {"y"},
                {{"mode", mode},
                 {"output_height", int64_t{2}},
                 {"output_width", int64_t{3}},
                 {"sampling_ratio", ratio}})
          .output("y");
      expect_right(
          model,
          {{"batch", {{1, 2, ""}}}, {"h", {{2, 7, ""}}}, {"w", {{3, 8, ""}}}, {"n", {{1, 4, ""}}}},
          {{2, 7, 8, 4}, {1, 2, 3, 1}, {2, 5, 4, 3}}, [](Rng& rng) { return 0.9 * rng.uniform(); });
    }
  }
}

Tensor number(int64_t value) {
  Tensor tensor(DType::kI64, {});
  tensor.set(0, static_cast<double>(value));
  return tensor;
}

// Rows of so many elements, with or without a gap behind each, as PyTorch's exporter writes
// as_strided. Without gaps nothing but the run's rows is needed of what comes before.
TEST(size_places, all_elements_in_their_order_are_a_reshape) {
  for (const int64_t distance : {4, 3}) {
    SCOPED_TRACE(distance);
    TestModel model;
    model.open_input("x", {"N", "4"})
        .constant("all", ints({-1}))
        .constant("first", number(0))
        .constant("step", number(1))
        .constant("distance", ints({distance}))
        .constant("inside", ints({0, 1, 2, 3}))
        .constant("last", ints({1}))
        .node("Relu", {"x"}, {"before"})
        .node("Reshape", {"before", "all"}, {"flat"})
        .node("Shape", {"x"}, {"shape"})
        .node("Gather", {"shape", "first"}, {"rows"})
        .node("Range", {"first", "rows", "step"}, {"row"})
        .node("Mul", {"row", "distance"}, {"begins"})
        .node("Unsqueeze", {"begins", "last"}, {"column"})
        .node("Add", {"column", "inside"}, {"places"})
        .node("Gather", {"flat", "places"}, {"y"})
        .output("y");
    const Ranges ranges = {{"N", {{2, 5, ""}}}};
    expect_right(model, ranges, {{5}, {2}, {3}});
    Result<Graph> graph = import_ranges(model, ranges);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    ASSERT_TRUE(optimize(*graph).ok());
    const bool gathers = std::any_of(graph->nodes.begin(), graph->nodes.end(),
                                     [](const Node& node) { return node.type == "Gather"; });
    EXPECT_EQ(gathers, distance != 4);
  }
}

// All rows at the largest size only.
TEST(size_places, the_first_rows_of_a_table) {
  for (const int64_t least : {1, 2, 7}) {
    TestModel model;
    model.open_input("ids", {"N"})
        .open_input("table", {"8", "3"})
        .constant("zero", number(0))
        .constant("one", number(1))
        .node("Shape", {"ids"}, {"shape"})
        .node("Gather", {"shape", "zero"}, {"length"})
        .node("Range", {"zero", "length", "one"}, {"places"})
        .node("Gather", {"table", "places"}, {"y"})
        .output("y");
    expect_right(model, {{"N", {{least, 8, ""}}}}, {{8}, {least}});
  }
}

TEST(size_places, rows_that_are_reversed) {
  for (const int64_t batch_axis : {0, 1}) {
    TestModel model;
    const std::vector<std::string> shape = batch_axis == 0
                                               ? std::vector<std::string>{"batch", "seq", "2"}
                                               : std::vector<std::string>{"seq", "batch", "2"};
    model.open_input("x", shape)
        .open_input("n", {"batch"})
        .node("Cast", {"n"}, {"lengths"}, {{"to", kI64}})
        .node("ReverseSequence", {"x", "lengths"}, {"y"},
              {{"batch_axis", batch_axis}, {"time_axis", 1 - batch_axis}})
        .output("y");
    std::vector<std::vector<int64_t>> sizes = {{3, 6}, {1, 4}, {2, 5}};
    if (batch_axis == 1) sizes = {{6, 3}, {4, 1}, {5, 2}};
    expect_right(model, {{"batch", {{1, 3, ""}}}, {"seq", {{4, 6, ""}}}}, sizes, few_numbers);
  }
}

// A cache of keys that a run adds to.
TEST(size_places, updates_of_a_window) {
  for (const std::string mode : {"linear", "circular"}) {
    SCOPED_TRACE(mode);
    TestModel model(24);
    model.open_input("cache", {"batch", "2", "7", "3"})
        .open_input("keys", {"batch", "2", "seq", "3"})
        .open_input("from", {"batch"})
        .node("Cast", {"from"}, {"start"}, {{"to", kI64}})
        .node("TensorScatter", {"cache", "keys", "start"}, {"y"}, {{"mode", mode}})
        .node("TensorScatter", {"cache", "keys"}, {"z"}, {{"mode", mode}})
        .output("y")
        .output("z");
    expect_right(model, {{"batch", {{1, 2, ""}}}, {"seq", {{1, 3, ""}}}}, {{2, 3}, {1, 1}, {2, 2}},
                 few_numbers);
  }
}

TEST(size_places, indices_of_maxima_and_back) {
  for (const int64_t order : {0, 1}) {
    SCOPED_TRACE(order);
    TestModel model;
    model.open_input("x", {"batch", "2", "h", "w"})
        .node("MaxPool", {"x"}, {"y", "places"},
              {{"kernel_shape", Shape{2, 2}}, {"strides", Shape{2, 2}}, {"storage_order", order}})
        .output("y")
        .output("places");
    if (order == 0) {
      model
          .node("MaxUnpool", {"y", "places"}, {"back"},
                {{"kernel_shape", Shape{2, 2}}, {"strides", Shape{2, 2}}})
          .output("back");
    }
    expect_right(model, {{"batch", {{1, 2, ""}}}, {"h", {{4, 8, ""}}}, {"w", {{4, 6, ""}}}},
                 {{2, 8, 6}, {1, 4, 5}, {2, 7, 4}});
  }
}

TEST(size_places, blocks_as_an_image) {
  TestModel model(18);
  model.open_input("x", {"batch", "8", "blocks"})
      .constant("zero", Tensor(DType::kI64, {}))
      .constant("end", ints({2}))
      .constant("next", ints({3}))
      .constant("two", ints({2}))
      .constant("three", ints({3}))
      .constant("block", ints({2, 2}))
      .node("Shape", {"x"}, {"shape"})
      .node("Slice", {"shape", "end", "next"}, {"count"})
      .node("Mul", {"count", "two"}, {"width"})
      .node("Concat", {"two", "width"}, {"image"}, {{"axis", int64_t{0}}})
      .node("Col2Im", {"x", "image", "block"}, {"y"}, {{"strides", Shape{2, 2}}})
      .output("y");
  expect_right(model, {{"batch", {{1, 2, ""}}}, {"blocks", {{1, 5, ""}}}},
               {{2, 5}, {1, 1}, {2, 3}});
}

// Adds "pads", which make the sides of x [N, 2, h, w] multiples of 4: all at the end, or half of
// them at the beginning.
void add_pads_to_multiples(TestModel& model, bool at_both_ends) {
  model.open_input("x", {"N", "2", "h", "w"})
      .constant("begin", ints({2}))
      .constant("end", ints({4}))
      .constant("four", ints({4}))
      .constant("two", ints({2}))
      .constant("none", ints({0, 0}))
      .node("Shape", {"x"}, {"shape"})
      .node("Slice", {"shape", "begin", "end"}, {"sides"})
      .node("Mod", {"sides", "four"}, {"over"})
      .node("Sub", {"four", "over"}, {"missing"})
      .node("Mod", {"missing", "four"}, {"added"});
  if (at_both_ends) {
    model.node("Div", {"added", "two"}, {"before"})
        .node("Sub", {"added", "before"}, {"behind"})
        .node("Concat", {"none", "before", "none", "behind"}, {"pads"}, {{"axis", int64_t{0}}});
  } else {
    model.node("Concat", {"none", "none", "none", "added"}, {"pads"}, {{"axis", int64_t{0}}});
  }
}

TEST(size_places, pads_that_make_sides_multiples) {
  for (const std::string mode : {"constant", "reflect", "edge", "wrap"}) {
    for (const bool at_both_ends : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", mode, at_both_ends));
      TestModel model(19);
      add_pads_to_multiples(model, at_both_ends);
      model.node("Pad", {"x", "pads"}, {"y"}, {{"mode", mode}}).output("y");
      expect_right(model, {{"N", {{1, 2, ""}}}, {"h", {{3, 12, ""}}}, {"w", {{4, 9, ""}}}},
                   {{2, 12, 9}, {1, 3, 4}, {2, 5, 8}, {1, 10, 7}});
    }
  }
}

// The number around the elements is one that the model computes.
TEST(size_places, padding_by_data) {
  TestModel model;
  model.open_input("x", {"N", "2", "w"})
      .constant("pads", ints({0, 0, 1, 0, 0, 2}))
      .node("ReduceMax", {"x"}, {"most"}, {{"keepdims", int64_t{0}}})
      .node("Pad", {"x", "pads", "most"}, {"y"})
      .output("y");
  expect_right(model, {{"N", {{1, 2, ""}}}, {"w", {{1, 5, ""}}}}, {{2, 5}, {1, 1}, {2, 3}});
}

TEST(size_places, a_window_in_the_middle) {
  TestModel model(18);
  model.open_input("x", {"h", "w", "k"})
      .constant("sides", ints({5, 4}))
      .node("CenterCropPad", {"x", "sides"}, {"y"}, {{"axes", Shape{0, -2}}})
      .open_input("like", {"a", "b", "c"})
      .node("Shape", {"like"}, {"shape"})
      .node("CenterCropPad", {"x", "shape"}, {"z"})
      .output("y")
      .output("z");
  expect_right(model,
               {{"h", {{1, 8, ""}}},
                {"w", {{2, 9, ""}}},
                {"k", {{1, 2, ""}}},
                {"a", {{1, 7, ""}}},
                {"b", {{2, 9, ""}}},
                {"c", {{1, 3, ""}}}},
               {{8, 9, 2, 7, 9, 3}, {1, 2, 1, 1, 2, 1}, {8, 2, 1, 1, 9, 3}, {3, 7, 2, 6, 4, 1}});
}

TEST(size_places, the_first_and_the_last_of_equal_elements) {
  TestModel model(20);
  model.open_input("x", {"n", "m"})
      .constant("three", ints({3}))
      .node("Cast", {"x"}, {"long"}, {{"to", kI64}})
      .node("Cast", {"x"}, {"short"}, {{"to", kI32}})
      .constant("few", floats({}, {3}))
      .node("Less", {"x", "few"}, {"truth"})
      .constant("second", ints({1}))
      .constant("nothing_less", floats({1, 1}, {-std::numeric_limits<float>::infinity()}))
      .node("Add", {"x", "nothing_less"}, {"least"});
  std::vector<std::string> results;
  for (const std::string operand : {"x", "long", "least"}) {
    for (const std::string type : {"ArgMax", "ArgMin"}) {
      for (const int64_t axis : {0, 1}) {
        for (const int64_t last : {0, 1}) {
          results.push_back(fmt::format("{}{}{}{}", operand, type, axis, last));
          model.node(type, {operand}, {results.back()},
                     {{"axis", axis}, {"select_last_index", last}});
        }
      }
    }
  }
  for (const std::string operand : {"long", "short"}) {
    for (const int64_t largest : {0, 1}) {
      const std::string name = fmt::format("{}{}", operand, largest);
      model.node("TopK", {operand, "three"}, {name, name + "p"},
                 {{"axis", int64_t{0}}, {"largest", largest}});
      results.insert(results.end(), {name, name + "p"});
    }
    for (const std::string type : {"ReduceMin", "ReduceMax"}) {
      results.push_back(operand + type);
      model.node(type, {operand, "second"}, {results.back()});
    }
  }
  for (const std::string type : {"ReduceMin", "ReduceMax"}) {
    results.push_back("truth" + type);
    model.node(type, {"truth", "second"}, {results.back()});
  }
  for (const std::string& result : results) model.output(result);
  expect_right(model, {{"n", {{3, 7, ""}}}, {"m", {{1, 6, ""}}}}, {{7, 6}, {3, 1}, {5, 4}},
               few_numbers);
}

TEST(size_places, diagonals) {
  TestModel model;
  model.open_input("x", {"n", "n", "2"})
      .open_input("v", {"n", "3"})
      .node("Einsum", {"x"}, {"trace"}, {{"equation", std::string("iik->k")}})
      .node("Einsum", {"x"}, {"diagonal"}, {{"equation", std::string("iik->ki")}})
      .node("Einsum", {"x", "v"}, {"product"}, {{"equation", std::string("iik,ij->kj")}})
      .output("trace")
      .output("diagonal")
      .output("product");
  expect_right(model, {{"n", {{1, 5, ""}}}}, {{5}, {1}, {3}});
}

TEST(size_places, repeated_elements) {
  TestModel model;
  model.open_input("x", {"n", "2", "m"})
      .constant("repeats", ints({3, 1, 2}))
      .node("Tile", {"x", "repeats"}, {"y"})
      .output("y");
  expect_right(model, {{"n", {{1, 4, ""}}}, {"m", {{1, 3, ""}}}}, {{4, 3}, {1, 1}, {1, 2}, {3, 1}});
}

// The data has one size, and the condition another one.
TEST(size_places, a_condition_that_varies) {
  TestModel model;
  model.open_input("mask", {"n"})
      .constant("half", floats({}, {0.5F}))
      .constant("rows", floats({6, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}))
      .node("Less", {"half", "mask"}, {"chosen"})
      .node("Compress", {"rows", "chosen"}, {"taken"}, {{"axis", int64_t{0}}})
      .node("ReduceSum", {"taken"}, {"sum"})
      .output("sum");
  expect_right(model, {{"n", {{1, 6, ""}}}}, {{6}, {1}, {4}}, zero_or_one);
}

}  // namespace
}  // namespace hone::graph
