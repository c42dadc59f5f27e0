// Transforms and divisions along extents that vary.
#include "hone/graph/size_check.h"

namespace hone::graph {
namespace {

TEST(extent_nodes, transforms_of_an_axis_that_varies) {
  for (const int64_t parts : {1, 2}) {
    for (const bool inverse : {false, true}) {
      for (const bool onesided : {false, true}) {
        if (onesided && parts == (inverse ? 1 : 2)) continue;
        for (const int64_t axis : {1, 2}) {
          SCOPED_TRACE(fmt::format("{} {} {} {}", parts, inverse, onesided, axis));
          TestModel model(17);
          std::vector<std::string> extents = {"2", "3", "3", std::to_string(parts)};
          extents[static_cast<size_t>(axis)] = "n";
          model.open_input("x", extents)
              .node(
                  "DFT", {"x"}, {"y"},
                  {{"axis", axis}, {"inverse", int64_t{inverse}}, {"onesided", int64_t{onesided}}})
              .output("y");
          expect_right(model, {{"n", {{2, 9, ""}}}}, {{9}, {2}, {3}, {8}, {5}});
        }
      }
    }
  }
}

// Beside a batch that varies, with the axis as an operand.
TEST(extent_nodes, transforms_of_several_rows) {
  TestModel model(20);
  Tensor axis(DType::kI64, {});
  axis.set(0, 1);
  model.open_input("x", {"batch", "n", "1"})
      .constant("axis", axis)
      .node("DFT", {"x", "", "axis"}, {"y"}, {{"onesided", int64_t{1}}})
      .output("y");
  expect_right(model, {{"batch", {{1, 3, ""}}}, {"n", {{1, 8, ""}}}},
               {{3, 8}, {1, 1}, {2, 7}, {3, 4}, {1, 5}});
}

// The last parts are shorter at some sizes, or have no elements.
TEST(extent_nodes, parts_of_which_the_last_are_shorter) {
  for (const int64_t count : {3, 4, 5}) {
    SCOPED_TRACE(count);
    TestModel model(18);
    model.open_input("x", {"n", "2"});
    std::vector<std::string> parts;
    for (int64_t i = 0; i < count; ++i) parts.push_back(fmt::format("part{}", i));
    model.node("Split", {"x"}, parts, {{"axis", int64_t{0}}, {"num_outputs", count}});
    Tensor first(DType::kI64, {1});
    for (int64_t i = 0; i < count; ++i) {
      const std::string name = parts[static_cast<size_t>(i)];
      model.node("ReduceSum", {name, "first"}, {name + ".sum"}).output(name + ".sum");
    }
    model.constant("first", first);
    expect_right(model, {{"n", {{5, 13, ""}}}}, {{13}, {5}, {6}, {9}, {12}, {10}, {11}});
  }
}

}  // namespace
}  // namespace hone::graph
