// Rules of operators for shapes that vary (size_rules*.cc).
#include "hone/graph/size_check.h"

namespace hone::graph {
namespace {

// A model whose value "flat", [2*seq, 4], has gaps between its rows if seq is not the largest.
TestModel with_gaps() {
  Rng rng(9);
  TestModel model;
  model.open_input("x", {"2", "seq", "4"})
      .constant("rows", ints({-1, 4}))
      .constant("apart", ints({2, -1, 4}))
      .constant("zero", ints({0}))
      .constant("last", ints({-1}))
      .constant("end", ints({1000}))
      .constant("one", ints({1}))
      .constant("nested", Tensor(DType::kI64, {1, 1}))
      .constant("pads", ints({1, 0, 0, 0}))
      .constant("kernel", random_tensor({2, 4, 3}, rng))
      .node("Reshape", {"x", "rows"}, {"flat"})
      .node("Unsqueeze", {"flat", "zero"}, {"images"})
      .node("Transpose", {"images"}, {"side"}, {{"perm", Shape{0, 2, 1}}})
      .node("Cast", {"flat"}, {"places"}, {{"to", int64_t{7}}})
      .node("Transpose", {"x"}, {"y0"}, {{"perm", Shape{1, 0, 2}}})
      .node("Reshape", {"y0", "rows"}, {"other"});
  return model;
}

// Numbers of which none is like another, and less than 4 in magnitude.
std::function<double(Rng&)> distinct() {
  return [next = 0](Rng&) mutable { return static_cast<double>(7 * next++ % 53) / 14; };
}

// Operators that take elements by their places get them side by side.
TEST(follow_sizes, elements_with_gaps_between_them_are_moved) {
  struct Case {
    std::string type;
    std::vector<std::string> inputs;
    Attrs attributes;
  };
  const std::vector<Case> cases = {
      {"Slice", {"flat", "last", "end", "zero"}, {}},
      {"Gather", {"flat", "last"}, {{"axis", int64_t{0}}}},
      {"GatherElements", {"flat", "places"}, {{"axis", int64_t{0}}}},
      {"GatherND", {"flat", "nested"}, {}},
      {"TopK", {"flat", "one"}, {{"axis", int64_t{0}}}},
      {"ArgMax", {"flat"}, {{"axis", int64_t{0}}}},
      {"Concat", {"flat", "flat"}, {{"axis", int64_t{0}}}},
      {"Concat", {"flat", "other"}, {{"axis", int64_t{1}}}},
      {"Pad", {"flat", "pads"}, {}},
      {"Conv", {"side", "kernel"}, {{"pads", Shape{1, 1}}}},
      {"MaxPool", {"side"}, {{"kernel_shape", Shape{2}}}},
      {"Trilu", {"flat"}, {}},
      {"Add", {"flat", "other"}, {}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.type + " " + one.inputs[0]);
    TestModel model = with_gaps();
    model.node(one.type, one.inputs, {"y"}, one.attributes).output("y");
    const auto graph = import_ranges(model, {{"seq", {{2, 6, ""}}}});
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    for (const int64_t seq : {2, 4, 6}) SizeCheck{model, *graph, distinct()}.at({seq}, seq == 4);
  }
}

TEST(follow_sizes, elements_with_gaps_between_them_that_two_operands_share) {
  const std::vector<std::pair<std::string, Attrs>> cases = {
      {"GatherElements", {{"axis", int64_t{1}}}},
      {"Einsum", {{"equation", std::string("si,sj->ij")}}}};
  for (const auto& [type, attributes] : cases) {
    TestModel model = with_gaps();
    model.node(type, {"other", type == "Einsum" ? "flat" : "places"}, {"y"}, attributes)
        .output("y");
    const auto graph = import_ranges(model, {{"seq", {{2, 6, ""}}}});
    ASSERT_FALSE(graph.ok());
    const std::string message = graph.status().message();
    EXPECT_NE(message.find("(" + type + ")"), std::string::npos) << message;
    EXPECT_NE(message.find("merges"), std::string::npos) << message;
  }
}

// Places whose channels lie side by side, read as a picture for each channel; and rows of a picture
// read as if it were the other way round.
TEST(follow_sizes, elements_that_move_to_other_dimensions_in_memory) {
  TestModel model;
  model.open_input("x", {"batch", "2", "h", "w"})
      .constant("list", ints({0, 0, -1}))
      .constant("first", ints({0}))
      .constant("sides", ints({3, 2}))
      .constant("channels", ints({2}))
      .node("Reshape", {"x", "list"}, {"places"})
      .node("Transpose", {"places"}, {"by_place"}, {{"perm", Shape{0, 2, 1}}})
      .node("Shape", {"x"}, {"shape"})
      .node("Reshape", {"by_place", "shape"}, {"y"})
      .node("Gather", {"shape", "first"}, {"batch"})
      .node("Gather", {"shape", "sides"}, {"turned"})
      .node("Concat", {"batch", "channels", "turned"}, {"shape_turned"}, {{"axis", int64_t{0}}})
      .node("Reshape", {"x", "shape_turned"}, {"z"})
      .node("Add", {"y", "x"}, {"sum"})
      .output("sum")
      .output("z");
  const auto graph =
      import_ranges(model, {{"batch", {{1, 2, ""}}}, {"h", {{1, 5, ""}}}, {"w", {{2, 7, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  for (const auto& at : {std::vector<int64_t>{2, 5, 7}, {1, 1, 2}, {2, 4, 3}, {2, 3, 7}})
    SizeCheck{model, *graph}.at(at, at[1] == 4);
}

// Rules that know of the gaps: results are divided into dimensions without gaps again.
TEST(follow_sizes, gaps_are_left_out_of_sums_and_kept_in_copies) {
  TestModel model = with_gaps();
  model.constant("axis", Tensor(DType::kI64, {}))
      .constant("thrice", ints({3, 1, 1}))
      .constant("copies", ints({3, 2, -1, 4}))
      .constant("depth", ints({3}))
      .constant("values", floats({2}, {-1, 2}))
      .constant("hot_apart", ints({2, -1, 4, 3}))
      .node("CumSum", {"flat", "axis"}, {"running"})
      .node("Reshape", {"running", "apart"}, {"y"})
      .node("Expand", {"flat", "thrice"}, {"expanded"})
      .node("Reshape", {"expanded", "copies"}, {"z"})
      .node("OneHot", {"places", "depth", "values"}, {"hot"})
      .node("Reshape", {"hot", "hot_apart"}, {"h"})
      .node("MatMul", {"side", "flat"}, {"product"})
      .output("y")
      .output("z")
      .output("h")
      .output("product");
  const auto graph = import_ranges(model, {{"seq", {{1, 6, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  for (const int64_t seq : {1, 4, 6}) SizeCheck{model, *graph, zero_or_one}.at({seq}, seq == 4);
}

// Places of a grid lead to the elements that a run has, with each kind of padding.
TEST(follow_sizes, a_grid_on_sides_that_vary) {
  for (const std::string mode : {"bilinear", "nearest", "bicubic"}) {
    for (const std::string padding : {"zeros", "border", "reflection"}) {
      for (const int64_t corners : {0, 1}) {
        SCOPED_TRACE(fmt::format("{} {} {}", mode, padding, corners));
        TestModel model;
        model.open_input("x", {"batch", "2", "h", "w"})
            .open_input("grid", {"batch", "rows", "3", "2"})
            .constant("wide", floats({}, {1.7F}))
            .node("Mul", {"grid", "wide"}, {"places"})
            .node("GridSample", {"x", "places"}, {"y"},
                  {{"mode", mode}, {"padding_mode", padding}, {"align_corners", corners}})
            .output("y");
        const auto graph = import_ranges(model, {{"batch", {{1, 2, ""}}},
                                                 {"h", {{1, 5, ""}}},
                                                 {"w", {{3, 6, ""}}},
                                                 {"rows", {{2, 4, ""}}}});
        ASSERT_TRUE(graph.ok()) << graph.status().message();
        for (const std::vector<int64_t>& sizes :
             std::vector<std::vector<int64_t>>{{2, 5, 6, 4}, {1, 1, 3, 2}, {2, 4, 5, 3}})
          SizeCheck{model, *graph}.at(sizes, sizes[1] == 4);
      }
    }
  }
}

// Of results whose shape depends on data, sums have one.
TEST(follow_sizes, elements_that_data_chooses) {
  TestModel model = with_gaps();
  model.constant("half", floats({}, {0.5F}))
      .constant("all", ints({-1}))
      .node("Reshape", {"x", "all"}, {"elements"})
      .node("Less", {"half", "elements"}, {"chosen"})
      .node("Compress", {"x", "chosen"}, {"taken"})
      .node("ReduceSum", {"taken"}, {"sum"})
      .node("Unique", {"x"}, {"different", "first", "which", "times"})
      .node("ReduceSum", {"different"}, {"of_different"})
      .node("ReduceMax", {"first"}, {"last_first"})
      .node("ReduceMax", {"times"}, {"most_often"})
      .node("Unique", {"x"}, {"lines", "", "which_row", ""}, {{"axis", int64_t{1}}})
      .node("Unique", {"x"}, {"planes"}, {{"axis", int64_t{2}}})
      .node("ReduceSum", {"lines"}, {"of_rows"})
      .node("ReduceSum", {"planes"}, {"of_planes"});
  for (const char* name : {"sum", "of_different", "last_first", "most_often", "which", "which_row",
                           "of_rows", "of_planes"})
    model.output(name);
  const auto graph = import_ranges(model, {{"seq", {{1, 6, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  for (const int64_t seq : {1, 4, 6}) SizeCheck{model, *graph, zero_or_one}.at({seq}, seq == 4);
}

// Graph networks choose edges, join a list that varies, and add what comes along the edges.
TEST(follow_sizes, edges_that_data_chooses_and_nodes) {
  TestModel model(18);
  model.open_input("mask", {"edges"})
      .open_input("messages", {"edges", "3"})
      .open_input("sums", {"nodes", "3"})
      .constant("flat", ints({-1}))
      .constant("column", ints({-1, 1}))
      .constant("zero", ints({0}))
      .node("NonZero", {"mask"}, {"found"})
      .node("Reshape", {"found", "flat"}, {"rows"})
      .node("Gather", {"messages", "rows"}, {"chosen"})
      .node("Concat", {"chosen", "sums"}, {"all"}, {{"axis", int64_t{0}}})
      .node("ReduceSum", {"all", "zero"}, {"total"})
      .node("Mul", {"rows", "zero"}, {"first"})
      .node("Reshape", {"first", "column"}, {"targets"})
      .node("Shape", {"chosen"}, {"shape"})
      .node("Expand", {"targets", "shape"}, {"places"})
      .node("ScatterElements", {"sums", "places", "chosen"}, {"y"},
            {{"reduction", std::string("add")}})
      .output("total")
      .output("y");
  const auto graph = import_ranges(model, {{"edges", {{1, 6, ""}}}, {"nodes", {{1, 4, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  for (const auto& [edges, nodes] : {std::pair(1, 1), {4, 2}, {2, 4}, {6, 4}})
    SizeCheck{model, *graph, zero_or_one}.at({edges, nodes}, edges == 4);
}

// Tuples that count from the end of a dimension that varies.
TEST(follow_sizes, tuples_of_places) {
  TestModel model = with_gaps();
  Tensor from_end(DType::kI64, {2, 2});
  for (const auto& [i, place] : {std::pair(0, 1), {1, -1}, {2, -2}, {3, -2}})
    from_end.set(i, place);
  model.constant("tuples", from_end).node("GatherND", {"x", "tuples"}, {"y"}).output("y");
  const auto graph = import_ranges(model, {{"seq", {{2, 6, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  for (const int64_t seq : {2, 4, 6}) SizeCheck{model, *graph, distinct()}.at({seq}, seq == 4);
  const auto shorter = import_ranges(model, {{"seq", {{1, 6, ""}}}});
  EXPECT_NE(shorter.status().message().find("index -2 into 1 elements; this is so at seq=1"),
            std::string::npos)
      << shorter.status().message();
}

std::string message_of(const TestModel& model, const ShapeRange& seq) {
  const auto graph = import_ranges(model, {{"seq", seq}});
  return graph.ok() ? std::string("imported") : graph.status().message();
}

// A model that computes "n", the extent of x [seq, 4].
TestModel with_extent() {
  TestModel model;
  Tensor one(DType::kI64, {}), less(DType::kI64, {});
  one.set(0, 1);
  less.set(0, -3);
  model.open_input("x", {"seq", "4"})
      .open_input("b", {"4"})
      .constant("first", Tensor(DType::kI64, {}))
      .constant("one", one)
      .constant("less", less)
      .constant("bias", floats({4}, {1, 2, 3, 4}))
      .node("Shape", {"x"}, {"shape"})
      .node("Gather", {"shape", "first"}, {"n"});
  return model;
}

// A branch that only some sizes take.
TEST(follow_sizes, another_branch_at_other_sizes_is_refused) {
  using Texts = std::pair<std::string, std::string>;
  for (const auto& [operand, other] :
       {Texts{"x", "Identity"}, Texts{"b", "Identity"}, Texts{"x", "Sub"}, Texts{"b", "Sub"}}) {
    SCOPED_TRACE(operand + " " + other);
    TestModel model = with_extent();
    model.node("Greater", {"n", "one"}, {"several"});
    model.text(fmt::format(R"(graph {{ node {{ op_type: 'If' name: 'if' input: 'several' output: 'y'
      attribute {{ name: 'then_branch' type: GRAPH g {{ name: 't'
        node {{ op_type: 'Add' input: '{0}' input: 'bias' output: 'sum' }}
        output {{ name: 'sum' }} }} }}
      attribute {{ name: 'else_branch' type: GRAPH g {{ name: 'e'
        node {{ op_type: '{1}' input: '{0}' {2} output: 'same' }}
        output {{ name: 'same' }} }} }} }} }})",
                           operand, other, other == "Sub" ? "input: 'bias'" : ""));
    model.node("Add", {"x", "y"}, {"z"}).output("z");
    const std::string message = message_of(model, {{1, 6, ""}});
    EXPECT_NE(message.find("at seq=1: give"), std::string::npos) << message;
    const auto graph = import_ranges(model, {{"seq", {{2, 6, ""}}}});
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    for (const int64_t seq : {2, 5}) SizeCheck{model, *graph}.at({seq}, seq == 5);
  }
}

// The diagonal of a triangle follows from the sizes; the depth of a code may not.
TEST(follow_sizes, parameters_that_vary_are_computed_or_refused) {
  TestModel triangle = with_extent();
  triangle.node("Add", {"n", "less"}, {"k"}).node("Trilu", {"x", "k"}, {"y"}).output("y");
  const auto graph = import_ranges(triangle, {{"seq", {{1, 6, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  for (const int64_t seq : {1, 4, 6}) SizeCheck{triangle, *graph}.at({seq}, seq == 4);

  TestModel code = with_extent();
  code.constant("values", floats({2}, {0, 1}))
      .node("Cast", {"b"}, {"places"}, {{"to", int64_t{7}}})
      .node("OneHot", {"places", "n", "values"}, {"y"})
      .output("y");
  const std::string message = message_of(code, {{1, 6, ""}});
  EXPECT_NE(message.find("(OneHot): its depth"), std::string::npos) << message;
}

// As many elements are padded as are cropped.
TEST(follow_sizes, padding_that_keeps_an_extent) {
  TestModel model = with_extent();
  model.constant("pads", ints({-1, 0, 1, 0})).node("Pad", {"x", "pads"}, {"y"}).output("y");
  const auto graph = import_ranges(model, {{"seq", {{2, 6, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  for (const int64_t seq : {2, 4, 6}) SizeCheck{model, *graph}.at({seq}, seq == 4);
}

// Numbers that are no sizes are computed again at run time.
TEST(follow_sizes, large_numbers_that_follow_from_sizes) {
  TestModel model = with_extent();
  model.constant("large", floats({}, {1e30F}))
      .node("Cast", {"n"}, {"number"}, {{"to", int64_t{1}}})
      .node("Mul", {"number", "large"}, {"factor"})
      .node("Mul", {"x", "factor"}, {"y"})
      .output("y");
  const auto graph = import_ranges(model, {{"seq", {{2, 6, ""}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  for (const int64_t seq : {2, 6}) SizeCheck{model, *graph}.at({seq}, false);
}

TEST(follow_sizes, more_extents_than_a_run_has_room_for) {
  TestModel model = with_extent();
  for (int64_t i = 0; i < kMaxForms; ++i) {
    const std::string pads = fmt::format("pads{}", i), y = fmt::format("y{}", i);
    model.constant(pads, ints({0, 0, i + 1, 0})).node("Pad", {"x", pads}, {y}).output(y);
  }
  const std::string message = message_of(model, {{2, 6, ""}});
  EXPECT_NE(message.find("'node_y63' (Pad): more than 64 extents"), std::string::npos) << message;
}

}  // namespace
}  // namespace hone::graph
