// Operators whose bodies are told how many elements a run has: running sums from the end, updates
// at places, the places of elements, elements that are chosen. GPUs run them without such numbers.
#include "hone/graph/size_check.h"

namespace hone::graph {
namespace {

constexpr int64_t kI64 = 7, kBool = 9;  // ONNX's codes of types

// Compares a model at these sizes, as CPUs run it and as GPUs do. Only the former has a node of
// this type with more operands than those that are no numbers of elements.
void expect_counted(const TestModel& model, const Ranges& ranges,
                    const std::vector<std::vector<int64_t>>& symbols, const std::string& type,
                    size_t operands, const std::function<double(Rng&)>& numbers = zero_or_one) {
  for (const bool repeats : {true, false}) {
    SCOPED_TRACE(fmt::format("{}, {}", type, repeats));
    const auto graph =
        import_at(model, {.ranges = ranges, .open_ranges = true, .repeats_steps = repeats});
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    const bool counts = std::any_of(
        graph->nodes.begin(), graph->nodes.end(),
        [&](const Node& node) { return node.type == type && node.inputs.size() > operands; });
    EXPECT_EQ(counts, repeats);
    for (const auto& at : symbols) SizeCheck{model, *graph, numbers}.at(at, &at == &symbols.back());
  }
}

double plain(Rng& rng) { return 2 * rng.uniform() - 1; }

TEST(size_counts, running_sums_from_the_end) {
  for (const int64_t exclusive : {0, 1}) {
    for (const int axis : {1, 2}) {
      TestModel model(26);
      const Attrs attributes = {{"reverse", int64_t{1}}, {"exclusive", exclusive}};
      model.open_input("x", {"batch", "n", "m"})
          .constant("axis", ints({axis}))
          .node("CumSum", {"x", "axis"}, {"y"}, attributes)
          .node("CumProd", {"x", "axis"}, {"z"}, attributes)
          .output("y")
          .output("z");
      const Ranges ranges = {{"batch", {{1, 3, ""}}}, {"n", {{1, 9, ""}}}, {"m", {{1, 11, ""}}}};
      for (const char* type : {"hone.CumSum", "hone.CumProd"})
        expect_counted(model, ranges, {{3, 9, 11}, {1, 1, 1}, {2, 4, 7}}, type, 2, plain);
    }
  }
}

// A dimension that merges others has gaps behind each row, which count as zeros.
TEST(size_counts, running_sums_of_merged_rows) {
  TestModel model;
  model.open_input("x", {"n", "m"})
      .constant("all", ints({-1}))
      .constant("zero", ints({0}))
      .node("Reshape", {"x", "all"}, {"flat"})
      .node("CumSum", {"flat", "zero"}, {"y"}, {{"reverse", int64_t{1}}})
      .output("y");
  expect_right(model, {{"n", {{1, 4, ""}}}, {"m", {{1, 5, ""}}}}, {{4, 5}, {1, 1}, {3, 2}});
}

TEST(size_counts, elements_at_places) {
  for (const std::string reduction : {"none", "add", "max"}) {
    for (const int64_t axis : {0, 1}) {
      TestModel model(18);
      const Attrs attributes = {{"reduction", reduction}, {"axis", axis}};
      model.open_input("x", {"n", "k"})
          .open_input("u", {"m", "k"})
          .open_input("p", {"m", "k"})
          .node("Cast", {"p"}, {"places"}, {{"to", kI64}})
          .node("ScatterElements", {"x", "places", "u"}, {"y"}, attributes)
          .output("y");
      const auto numbers = [](Rng& rng) { return std::floor(3 * rng.uniform()); };
      expect_counted(model, {{"n", {{4, 7, ""}}}, {"m", {{1, 4, ""}}}, {"k", {{3, 6, ""}}}},
                     {{7, 6, 4}, {4, 3, 1}, {6, 4, 3}}, "hone.ScatterElements", 3, numbers);
    }
  }
}

TEST(size_counts, rows_at_places) {
  for (const std::string reduction : {"none", "add"}) {
    TestModel model(18);
    model.open_input("x", {"n", "4", "k"})
        .open_input("u", {"a", "b", "k"})
        .open_input("p", {"a", "b", "2"})
        .node("Cast", {"p"}, {"places"}, {{"to", kI64}})
        .node("ScatterND", {"x", "places", "u"}, {"y"}, {{"reduction", reduction}})
        .output("y");
    const auto numbers = [](Rng& rng) { return std::floor(3 * rng.uniform()); };
    expect_counted(
        model, {{"n", {{3, 7, ""}}}, {"a", {{1, 4, ""}}}, {"b", {{1, 3, ""}}}, {"k", {{1, 6, ""}}}},
        {{7, 6, 4, 3}, {3, 1, 1, 1}, {6, 4, 2, 3}}, "hone.ScatterND", 3, numbers);
  }
}

TEST(size_counts, the_places_of_elements) {
  TestModel model;
  model.open_input("x", {"n", "m", "k"})
      .open_input("data", {"n", "m", "k"})
      .constant("zero", ints({0}))
      .node("NonZero", {"x"}, {"found"})
      .node("Transpose", {"found"}, {"places"})
      .node("GatherND", {"data", "places"}, {"chosen"})
      .node("CumSum", {"chosen", "zero"}, {"running"})
      .node("ReduceSum", {"running"}, {"y"})
      .node("ReduceSum", {"found", "zero"}, {"sums"})
      .node("ReduceMax", {"sums"}, {"last"})
      .output("y")
      .output("last");
  const auto numbers = [](Rng& rng) { return std::max(0.0, std::floor(4 * rng.uniform()) - 1); };
  expect_counted(model, {{"n", {{1, 3, ""}}}, {"m", {{1, 4, ""}}}, {"k", {{1, 9, ""}}}},
                 {{3, 4, 9}, {1, 1, 1}, {2, 3, 5}}, "hone.NonZero", 1, numbers);
}

TEST(size_counts, elements_that_a_condition_takes) {
  for (const int64_t axis : {0, 1, 2}) {  // 2: none
    TestModel model;
    const std::string rows = axis == 2 ? "k" : "n";
    model
        .open_input("x", axis == 1   ? std::vector<std::string>{"m", "n"}
                         : axis == 0 ? std::vector<std::string>{"n", "m"}
                                     : std::vector<std::string>{"k"})
        .open_input("c", {rows})
        .constant("zero", ints({0}))
        .node("Cast", {"c"}, {"condition"}, {{"to", kBool}})
        .node("Compress", {"x", "condition"}, {"taken"},
              axis == 2 ? Attrs{} : Attrs{{"axis", axis}})
        .constant("along", ints({axis == 2 ? 0 : axis}))
        .node("CumSum", {"taken", "along"}, {"running"})
        .node("ReduceSum", {"running"}, {"y"})
        .output("y");
    if (axis == 2) {
      expect_counted(model, {{"k", {{1, 12, ""}}}}, {{12}, {1}, {7}}, "hone.Compress", 2);
    } else {
      const Ranges ranges = {{"n", {{1, 9, ""}}}, {"m", {{1, 4, ""}}}};
      const std::vector<std::vector<int64_t>> sizes =
          axis == 0 ? std::vector<std::vector<int64_t>>{{9, 4}, {1, 1}, {5, 3}}
                    : std::vector<std::vector<int64_t>>{{4, 9}, {1, 1}, {3, 5}};
      expect_counted(model, ranges, sizes, "hone.Compress", 2);
    }
  }
}

TEST(size_counts, boxes_that_are_selected) {
  TestModel model;
  model.open_input("boxes", {"images", "n", "4"})
      .open_input("scores", {"images", "classes", "n"})
      .constant("most", ints({3}))
      .constant("overlap", floats({1}, {0.3F}))
      .constant("zero", ints({0}))
      .node("NonMaxSuppression", {"boxes", "scores", "most", "overlap"}, {"found"})
      .node("CumSum", {"found", "zero"}, {"running"})
      .node("ReduceSum", {"running"}, {"y"})
      .output("y");
  expect_counted(model, {{"images", {{1, 3, ""}}}, {"classes", {{1, 2, ""}}}, {"n", {{3, 9, ""}}}},
                 {{3, 9, 2}, {1, 3, 1}, {2, 5, 2}}, "hone.SelectBoxes", 4, plain);
}

}  // namespace
}  // namespace hone::graph
