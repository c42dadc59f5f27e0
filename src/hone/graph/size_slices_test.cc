// Slices of an extent that varies, which may be shorter than what they take.
#include "hone/graph/size_check.h"
#include "hone/graph/size_options.h"

namespace hone::graph {
namespace {

constexpr int64_t kEnd = INT64_MAX;

struct Part {
  int64_t start, end, step = 1;
  std::string extent;  // of the result
};

// Adds a Slice along a dimension.
void add_slice(TestModel& model, const std::string& x, const std::string& y, int64_t axis,
               const Part& part) {
  model.constant(y + ".start", ints({part.start}))
      .constant(y + ".end", ints({part.end}))
      .constant(y + ".axis", ints({axis}))
      .constant(y + ".step", ints({part.step}))
      .node("Slice", {x, y + ".start", y + ".end", y + ".axis", y + ".step"}, {y});
}

std::string text_of(const Graph& graph, size_t output, size_t dim) {
  const SizePart& part = graph.varying.outputs[output][dim][0];
  return part.form == kNoForm
             ? std::to_string(part.most)
             : form_text(graph.varying, graph.varying.forms[static_cast<size_t>(part.form)]);
}

TEST(size_slices, take_what_there_is) {
  const std::vector<Part> parts = {{0, 5, 1, "min(seq, 5)"},
                                   {-5, kEnd, 1, "min(seq, 5)"},
                                   {3, kEnd, 1, "max(seq - 3, 0)"},
                                   {0, -3, 1, "max(seq - 3, 0)"},
                                   {-6, -2, 1, "min(max(seq - 2, 0), 4)"},
                                   {2, 9, 1, "min(max(seq - 2, 0), 7)"},
                                   {1, 9, 3, "min((seq + 1)/3, 3)"},
                                   {-1, -6, -1, "min(seq, 5)"},
                                   {6, 1, -2, "min((seq - 1)/2, 3)"}};
  for (const Part& part : parts) {
    SCOPED_TRACE(fmt::format("{}:{}:{}", part.start, part.end, part.step));
    TestModel model;
    model.open_input("x", {"batch", "seq", "3"});
    add_slice(model, "x", "y", 1, part);
    model.constant("axis", ints({1}))
        .node("ReduceSum", {"y", "axis"}, {"sums"})
        .node("Concat", {"y", "x"}, {"both"}, {{"axis", int64_t{1}}})
        .node("Softmax", {"both"}, {"shares"}, {{"axis", int64_t{1}}})
        .output("y")
        .output("sums")
        .output("shares");
    const auto graph = import_ranges(model, {{"batch", {{1, 2, ""}}}, {"seq", {{1, 12, ""}}}});
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    EXPECT_EQ(text_of(*graph, 0, 1), part.extent);
    for (const int64_t seq : {1, 2, 3, 5, 7, 9, 12})
      SizeCheck{model, *graph}.at({2, seq}, seq == 3);
  }
}

// The strides before it divide by more than is found from numbers alone.
TEST(size_slices, of_quotients_with_large_divisors) {
  TestModel model;
  model.open_input("x", {"1", "1", "samples"})
      .node("AveragePool", {"x"}, {"frames"},
            {{"kernel_shape", Shape{100}}, {"strides", Shape{90}}});
  add_slice(model, "frames", "rest", 2, {2, kEnd});
  add_slice(model, "frames", "back", 2, {-2, -5, -1, ""});
  model.output("rest").output("back");
  const auto graph = import_ranges(model, {{"samples", {{550, 2000, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(text_of(*graph, 0, 2), "(samples - 190)/90");
  for (const int64_t samples : {550, 639, 640, 1999}) SizeCheck{model, *graph}.at({samples}, false);
}

// The range decides whether a bound matters.
TEST(size_slices, have_no_bounds_that_no_size_reaches) {
  const auto extent = [](const Part& part, int64_t least, int64_t most) {
    TestModel model;
    model.open_input("x", {"seq", "3"});
    add_slice(model, "x", "y", 0, part);
    model.output("y");
    const auto graph = import_ranges(model, {{"seq", {{least, most, ""}}}});
    return graph.ok() ? text_of(*graph, 0, 0) : graph.status().message();
  };
  EXPECT_EQ(extent({0, 5}, 1, 5), "seq");
  EXPECT_EQ(extent({0, 5}, 1, 6), "min(seq, 5)");
  EXPECT_EQ(extent({3, kEnd}, 3, 9), "seq - 3");
  EXPECT_EQ(extent({3, kEnd}, 2, 9), "max(seq - 3, 0)");
  EXPECT_EQ(extent({2, 9}, 2, 12), "min(seq - 2, 7)");
}

// A cache of keys that keeps the last ones only, and the scores of a token for those.
TEST(size_slices, windows_of_a_cache) {
  TestModel model;
  model.open_input("past", {"batch", "2", "past_len", "4"})
      .open_input("new", {"batch", "2", "seq", "4"})
      .node("Concat", {"past", "new"}, {"all"}, {{"axis", int64_t{2}}});
  add_slice(model, "all", "keys", 2, {-7, kEnd});
  model.node("Transpose", {"keys"}, {"turned"}, {{"perm", Shape{0, 1, 3, 2}}})
      .node("MatMul", {"new", "turned"}, {"scores"})
      .node("Softmax", {"scores"}, {"shares"})
      .node("MatMul", {"shares", "keys"}, {"y"})
      .output("keys")
      .output("y");
  const auto graph = import_ranges(
      model, {{"batch", {{1, 2, ""}}}, {"past_len", {{0, 9, ""}}}, {"seq", {{1, 4, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(text_of(*graph, 0, 2), "min(past_len + seq, 7)");
  for (const auto& at : std::vector<std::vector<int64_t>>{
           {2, 9, 4}, {1, 0, 1}, {2, 3, 4}, {2, 3, 3}, {2, 4, 4}, {1, 9, 1}})
    SizeCheck{model, *graph}.at(at, at[1] == 4);
}

// Extents that follow from one that is cut: quotients, and sums of elements of maps.
TEST(size_slices, decide_the_extents_of_what_follows) {
  TestModel model;
  model.open_input("x", {"n", "2", "h", "w"})
      .node("MaxPool", {"x"}, {"half"}, {{"kernel_shape", Shape{1, 1}}, {"strides", Shape{2, 2}}});
  add_slice(model, "half", "top", 2, {0, 7});
  model
      .node("MaxPool", {"top"}, {"quarter"},
            {{"kernel_shape", Shape{2, 1}}, {"strides", Shape{2, 1}}})
      .constant("rows", ints({0, 2, -1}))
      .node("Reshape", {"top", "rows"}, {"a"})
      .node("Reshape", {"half", "rows"}, {"b"})
      .node("Concat", {"a", "b"}, {"both"}, {{"axis", int64_t{2}}})
      .node("Softmax", {"both"}, {"shares"})
      .output("quarter")
      .output("both")
      .output("shares");
  const auto graph =
      import_ranges(model, {{"n", {{1, 2, ""}}}, {"h", {{3, 20, ""}}}, {"w", {{2, 5, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(text_of(*graph, 0, 2), "min((h + 1)/4, 3)");
  for (const int64_t h : {3, 6, 11, 13, 16, 20})
    SizeCheck{model, *graph}.at({2, h, h % 4 + 2}, h == 11);
}

// Swin pads a side up to whole windows, rolls it by half a window, and numbers its last windows in
// a table of as many places.
TEST(size_slices, of_an_extent_that_is_rounded_up) {
  TestModel model;
  model.open_input("x", {"n", "side", "3"}).constant("eight", ints({8})).constant("one", ints({1}));
  model.constant("zeros", ints({0, 0, 0, 0}))
      .constant("zero", ints({0}))
      .constant("first", ints({0}));
  Tensor none(DType::kI64, {}), step(DType::kI64, {});
  step.set(0, 1);
  model.constant("none", none).constant("step", step);
  model.node("Shape", {"x"}, {"side"}, {{"start", int64_t{1}}, {"end", int64_t{2}}})
      .node("Mod", {"side", "eight"}, {"rest"})
      .node("Sub", {"eight", "rest"}, {"missing"})
      .node("Mod", {"missing", "eight"}, {"behind"})
      .node("Concat", {"zeros", "behind", "zero"}, {"pads"}, {{"axis", int64_t{0}}})
      .node("Pad", {"x", "pads"}, {"padded"});
  model.node("Shape", {"padded"}, {"all"}, {{"start", int64_t{1}}, {"end", int64_t{2}}})
      .constant("half", ints({4}))
      .node("Mod", {"half", "all"}, {"shift"})
      .node("Slice", {"padded", "shift", "all", "one"}, {"tail"})
      .node("Slice", {"padded", "first", "shift", "one"}, {"head"})
      .node("Concat", {"tail", "head"}, {"rolled"}, {{"axis", int64_t{1}}});
  model.node("Squeeze", {"all"}, {"count"}).node("Range", {"none", "count", "step"}, {"places"});
  add_slice(model, "places", "but_last", 0, {0, -8});
  add_slice(model, "places", "last", 0, {-4, kEnd});
  model.output("rolled").output("but_last").output("last");
  const auto graph = import_ranges(model, {{"n", {{1, 2, ""}}}, {"side", {{17, 40, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  for (int64_t side = 17; side <= 40; ++side) SizeCheck{model, *graph}.at({1, side}, side == 21);
}

// Forms without bounds, and with those of another part, may give the numbers of a few sizes, too.
TEST(size_slices, of_cut_extents_are_right_at_all_sizes) {
  TestModel model;
  model.open_input("x", {"1", "seq", "3"});
  add_slice(model, "x", "cut", 1, {0, 7});
  add_slice(model, "cut", "halves", 1, {0, kEnd, 2, ""});
  add_slice(model, "halves", "last", 1, {-1, kEnd});
  add_slice(model, "x", "thirds", 1, {1, 8, 3, ""});
  add_slice(model, "x", "quarters", 1, {1, kEnd, 4, ""});
  model.output("halves").output("last").output("thirds").output("quarters");
  const auto graph = import_ranges(model, {{"seq", {{1, 13, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(text_of(*graph, 3, 1), "(seq + 2)/4");
  for (int64_t seq = 1; seq <= 13; ++seq) SizeCheck{model, *graph}.at({seq}, false);
}

TEST(size_slices, windows_of_cut_extents_are_right_at_all_sizes) {
  TestModel model;
  model.open_input("x", {"1", "seq", "3"});
  add_slice(model, "x", "cut", 1, {0, 7});
  model.node("Transpose", {"cut"}, {"rows"}, {{"perm", Shape{0, 2, 1}}})
      .node("MaxPool", {"rows"}, {"y"}, {{"kernel_shape", Shape{1}}, {"strides", Shape{2}}})
      .output("y");
  const auto graph = import_ranges(model, {{"seq", {{1, 12, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  for (int64_t seq = 1; seq <= 12; ++seq) SizeCheck{model, *graph}.at({seq}, false);
}

}  // namespace
}  // namespace hone::graph
