#include <gtest/gtest.h>

#include <algorithm>

#include "hone/graph/ops/resize_taps.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

TestModel resize(const Shape& shape, const std::vector<float>& scales,
                 const AttributeList& attributes, DType dtype = DType::kF32) {
  TestModel m(18);
  m.input("x", shape, dtype)
      .constant("s", floats({static_cast<int64_t>(scales.size())}, scales))
      .node("Resize", {"x", "", "s"}, {"y"}, attributes)
      .output("y");
  return m;
}

int64_t count_nodes(const Graph& graph, const std::string& type) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const Node& node) { return node.type == type; });
}

// Whole factors need no tables: a repetition, or a slice.
TEST(resize, nearest_by_whole_factors) {
  const AttributeList asymmetric = {{"coordinate_transformation_mode", std::string("asymmetric")},
                                    {"nearest_mode", std::string("floor")}};
  const Graph up = resize({1, 1, 2, 2}, {1, 1, 2, 3}, asymmetric).graph();
  EXPECT_EQ(count_nodes(up, "hone.Repeat"), 1);
  EXPECT_EQ(count_nodes(up, "hone.Resample"), 0);
  const Tensor small = floats({1, 1, 2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(relative_error(run_optimized(up, {small})[0],
                           floats({1, 1, 4, 6}, {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2,
                                                 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4})),
            0);
  const Graph down = resize({1, 1, 1, 6}, {1, 1, 1, 0.5F}, asymmetric).graph();
  EXPECT_EQ(count_nodes(down, "Slice"), 1);
  EXPECT_EQ(relative_error(run_optimized(down, {floats({1, 1, 1, 6}, {0, 1, 2, 3, 4, 5})})[0],
                           floats({1, 1, 1, 3}, {0, 2, 4})),
            0);
  const Graph other = resize({1, 1, 1, 2}, {1, 1, 1, 1.5F}, asymmetric).graph();
  EXPECT_EQ(count_nodes(other, "hone.Resample"), 1);
  EXPECT_EQ(relative_error(run_optimized(other, {floats({1, 1, 1, 2}, {7, 8})})[0],
                           floats({1, 1, 1, 3}, {7, 7, 8})),
            0);
}

TEST(resize, linear_rounds_integers) {
  Tensor x(DType::kU8, {1, 1, 1, 2});
  x.set(0, 10);
  x.set(1, 253);
  const Graph graph =
      resize({1, 1, 1, 2}, {1, 1, 1, 2}, {{"mode", std::string("linear")}}, DType::kU8).graph();
  const Tensor y = run_optimized(graph, {x})[0];
  const double expected[] = {10, 71, 192, 253};  // 70.75, 192.25
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(y.at(i), expected[i]);
}

// Weights sum to 1 in every mode, so a constant picture stays one.
TEST(resize, taps_are_inside_and_sum_to_one) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* coordinates : {"half_pixel", "align_corners", "asymmetric",
                                    "half_pixel_symmetric", "pytorch_half_pixel"}) {
      for (const bool antialias : {false, true}) {
        for (const double scale : {0.2, 0.7, 1.0, 2.5}) {
          ResizeMode m{.mode = mode, .coordinates = coordinates};
          m.antialias = antialias;
          m.exclude_outside = scale == 0.7;
          const auto out = static_cast<int64_t>(10 * scale);
          const Result<Taps> made = make_taps(m, {.input = 10, .output = out, .scale = scale});
          ASSERT_TRUE(made.ok()) << made.status().message();
          const Taps& taps = *made;
          ASSERT_EQ(static_cast<int64_t>(taps.index.size()), out * taps.count);
          for (int64_t o = 0; o < out; ++o) {
            double sum = 0;
            for (int64_t k = 0; k < taps.count; ++k) {
              const auto at = static_cast<size_t>(o * taps.count + k);
              EXPECT_TRUE(taps.index[at] >= 0 && taps.index[at] < 10);
              sum += taps.weight[at];
            }
            EXPECT_NEAR(sum, 1, 1e-9) << mode << " " << coordinates << " " << scale;
          }
        }
      }
    }
  }
}

TEST(resize, a_filter_without_end_is_refused) {
  const ResizeMode antialias = {.mode = "linear", .antialias = true};
  EXPECT_FALSE(make_taps(antialias, {.input = 10, .output = 10, .scale = 1e-30}).ok());
  EXPECT_FALSE(make_taps(antialias, {.input = 10, .output = 0, .scale = 1e-30}).ok());
}

TEST(resize, defects_are_named) {
  const auto message = [](const TestModel& m) { return m.import().status().message(); };
  EXPECT_NE(message(resize({1, 1, 2, 2}, {1, 2}, {})).find("2 scales or sizes for 4 axes"),
            std::string::npos);
  EXPECT_NE(message(resize({1, 1, 2, 2}, {1, 1, 2, 2}, {{"mode", std::string("best")}}))
                .find("mode 'best'"),
            std::string::npos);
  EXPECT_NE(message(resize({1, 1, 2, 2}, {1, 1, -2, 2}, {})).find("a scale or size of -2"),
            std::string::npos);
}

}  // namespace
}  // namespace hone::graph
