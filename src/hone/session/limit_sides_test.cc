// Pictures whose sides vary: which parts of a net's maps a run needs.
#include <gtest/gtest.h>

#include "hone/session/limit_tasks_testing.h"

namespace hone {
namespace {

using testing::Limited;
using testing::limited;

const testing::Ranges kSides = {{"height", {{8, 32, ""}}}, {"width", {{8, 32, ""}}}};

graph::TestModel picture(Rng& rng) {
  graph::TestModel model;
  model.open_input("x", {"1", "4", "height", "width"})
      .constant("w", graph::random_tensor({4, 4, 3, 3}, rng))
      .constant("v", graph::random_tensor({4, 4, 1, 1}, rng));
  return model;
}

// Each convolution computes what lies within both sides only.
void expect_limited_convolutions(const Limited& made, int number) {
  int found = 0;
  for (size_t c = 0; c < made.limits.size(); ++c) {
    const graph::TaskCall& call = made.tasks.calls[c];
    if (!compute::kernel_class(call.dag).starts_with("conv")) continue;
    ++found;
    EXPECT_EQ(made.limits[c].outputs.size(), 2u) << call.name;
  }
  EXPECT_EQ(found, number) << graph::describe(made.tasks);
}

bool has_class(const Limited& made, std::string_view part) {
  return std::ranges::any_of(made.tasks.calls, [&](const graph::TaskCall& call) {
    return compute::kernel_class(call.dag).find(part) != std::string::npos;
  });
}

// The sides of the map and of the doubled one are different sizes of the run.
TEST(limit_sides, of_a_map_that_is_read_as_it_is_and_doubled) {
  Rng rng(1);
  graph::TestModel model = picture(rng);
  model.constant("two", graph::floats({4}, {1, 1, 2, 2}))
      .node("Conv", {"x", "w"}, {"c"}, {{"pads", Shape{1, 1, 1, 1}}})
      .node("Resize", {"c", "", "two"}, {"u"},
            {{"mode", std::string("nearest")},
             {"coordinate_transformation_mode", std::string("asymmetric")},
             {"nearest_mode", std::string("floor")}})
      .node("Conv", {"c", "v"}, {"y"})
      .node("Conv", {"u", "v"}, {"z"})
      .output("y")
      .output("z");
  const Limited made = limited(model, false, kSides);
  expect_limited_convolutions(made, 3);
  EXPECT_TRUE(has_class(made, "repeat"));
  EXPECT_FALSE(has_class(made, "gather"));
}

// The elements of a run are gathered from a map and put behind each other.
TEST(limit_sides, of_maps_that_become_one_list) {
  Rng rng(1);
  graph::TestModel model = picture(rng);
  model.constant("rows", graph::ints({1, 4, -1}))
      .node("Conv", {"x", "w"}, {"a"}, {{"pads", Shape{1, 1, 1, 1}}})
      .node("MaxPool", {"a"}, {"p"}, {{"kernel_shape", Shape{2, 2}}, {"strides", Shape{2, 2}}})
      .node("Conv", {"p", "v"}, {"b"})
      .node("MaxPool", {"b"}, {"q"}, {{"kernel_shape", Shape{2, 2}}, {"strides", Shape{2, 2}}})
      .node("Conv", {"q", "v"}, {"c"})
      .node("Reshape", {"a", "rows"}, {"l"})
      .node("Reshape", {"b", "rows"}, {"m"})
      .node("Reshape", {"c", "rows"}, {"n"})
      .node("Concat", {"l", "m", "n"}, {"y"}, {{"axis", int64_t{2}}})
      .output("y");
  const Limited made = limited(model, false, kSides);
  EXPECT_TRUE(has_class(made, "gather"));
  expect_limited_convolutions(made, 3);
}

// The boxes of scores that a run does not have are never looked at.
TEST(limit_sides, of_boxes_whose_best_are_selected) {
  graph::TestModel model;
  model.open_input("b", {"1", "boxes", "4"})
      .open_input("s", {"1", "2", "boxes"})
      .constant("most", graph::ints({3}))
      .node("Sigmoid", {"b"}, {"inside"})
      .node("NonMaxSuppression", {"inside", "s", "most"}, {"selected"})
      .output("selected");
  const Limited made = limited(model, false, {{"boxes", {{5, 50, ""}}}});
  int found = 0;
  for (size_t c = 0; c < made.limits.size(); ++c) {
    if (compute::kernel_class(made.tasks.calls[c].dag) != "sigmoid") continue;
    ++found;
    EXPECT_EQ(made.limits[c].outputs.size(), 1u);
  }
  EXPECT_EQ(found, 1) << graph::describe(made.tasks);
}

}  // namespace
}  // namespace hone
