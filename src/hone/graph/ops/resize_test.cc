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

// Whole factors of one axis need no tables: a repetition, or a slice.
TEST(resize, nearest_by_whole_factors) {
  const AttributeList asymmetric = {{"coordinate_transformation_mode", std::string("asymmetric")},
                                    {"nearest_mode", std::string("floor")}};
  const Graph up = resize({1, 1, 2, 2}, {1, 1, 1, 3}, asymmetric).graph();
  EXPECT_EQ(count_nodes(up, "hone.Repeat"), 1);
  EXPECT_EQ(count_nodes(up, "hone.Resample"), 0);
  const Tensor small = floats({1, 1, 2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(relative_error(run_optimized(up, {small})[0],
                           floats({1, 1, 2, 6}, {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4})),
            0);
  const Graph both = resize({1, 1, 2, 2}, {1, 1, 2, 3}, asymmetric).graph();
  EXPECT_EQ(count_nodes(both, "hone.ResamplePlane"), 1);
  EXPECT_EQ(relative_error(run_optimized(both, {small})[0],
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

// The definition: along each axis sums by its table, in double.
Tensor resampled(const Tensor& x, size_t axis, const Taps& taps, double extrapolation) {
  Shape shape = x.shape();
  const auto extent = static_cast<int64_t>(taps.outside.size());
  int64_t inner = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  const int64_t before = shape[axis];
  shape[axis] = extent;
  Tensor y(DType::kF64, shape);
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t o = i / inner % extent, row = i / inner / extent;
    double sum = taps.outside[static_cast<size_t>(o)] ? extrapolation : 0;
    for (int64_t k = 0; k < taps.count && !taps.outside[static_cast<size_t>(o)]; ++k) {
      const auto tap = static_cast<size_t>(o * taps.count + k);
      sum += taps.weight[tap] * x.at((row * before + taps.index[tap]) * inner + i % inner);
    }
    y.set(i, sum);
  }
  return y;
}

struct Case {
  Shape shape;
  std::vector<float> scales;
  std::string mode, coordinates;
  bool antialias = false;
};

void expect_resampled(const Case& test, DType dtype, bool channels_last, double tolerance) {
  const Shape& s = test.shape;
  AttributeList attributes = {{"mode", test.mode},
                              {"coordinate_transformation_mode", test.coordinates},
                              {"extrapolation_value", 2.5F},
                              {"antialias", int64_t{test.antialias}}};
  TestModel m(18);
  const bool turned = channels_last && s.size() == 4;
  m.input("x", turned ? Shape{s[0], s[2], s[3], s[1]} : s, dtype);
  m.constant("s", floats({static_cast<int64_t>(s.size())}, test.scales));
  // The part of the data that tf_crop_and_resize takes, beyond its end along the last axis.
  std::vector<float> region(2 * s.size(), 0);
  std::fill(region.begin() + static_cast<long>(s.size()), region.end(), 1.F);
  region[s.size() - 1] = 0.25F;
  region.back() = 1.125F;
  m.constant("r", floats({static_cast<int64_t>(region.size())}, region));
  const AttributeList to_first = {{"perm", Shape{0, 3, 1, 2}}},
                      back = {{"perm", Shape{0, 2, 3, 1}}};
  if (turned) m.node("Transpose", {"x"}, {"t"}, to_first);
  m.node("Resize", {turned ? "t" : "x", "r", "s"}, {turned ? "u" : "y"}, attributes);
  if (turned) m.node("Transpose", {"u"}, {"y"}, back);
  m.output("y");
  Rng rng(7);
  Tensor x(dtype, turned ? Shape{s[0], s[2], s[3], s[1]} : s);
  for (int64_t i = 0; i < x.size(); ++i)
    x.set(i, is_float(dtype) ? rng.uniform() * 2 - 1 : static_cast<double>(rng.below(200)));
  const Tensor y = run_optimized(m.graph(), {x})[0];
  // By the definition, in the order of the data's dimensions.
  const size_t first = turned ? 1 : s.size() - 2;
  Tensor expected(DType::kF64, x.shape());
  for (int64_t i = 0; i < x.size(); ++i) expected.set(i, x.at(i));
  ResizeMode mode{.mode = test.mode, .coordinates = test.coordinates, .antialias = test.antialias};
  for (const size_t d : {s.size() - 2, s.size() - 1}) {
    ResizeAxis axis{.input = s[d], .scale = static_cast<double>(test.scales[d])};
    axis.output = static_cast<int64_t>(static_cast<float>(s[d]) * test.scales[d]);
    if (test.coordinates == "tf_crop_and_resize" && d + 1 == s.size()) {
      axis.roi_start = 0.25;
      axis.roi_end = 1.125;
    } else if (axis.scale == 1) {
      continue;
    }
    const Result<Taps> taps = make_taps(mode, axis);
    ASSERT_TRUE(taps.ok());
    expected = resampled(expected, first + (d + 2 - s.size()), *taps, 2.5);
  }
  ASSERT_EQ(y.shape(), expected.shape());
  for (int64_t i = 0; i < y.size(); ++i) {
    ASSERT_NEAR(y.at(i), expected.at(i), tolerance)
        << test.mode << " " << test.coordinates << " " << to_string(s) << " at " << i;
  }
}

TEST(resize, is_sums_along_each_axis) {
  const std::vector<Case> cases = {
      {{1, 2, 5, 6}, {1, 1, 2, 2}, "linear", "half_pixel"},
      {{2, 3, 9, 40}, {1, 1, 2, 2}, "linear", "half_pixel"},
      {{1, 2, 33, 50}, {1, 1, 3, 1.5F}, "linear", "align_corners"},
      {{1, 1, 70, 33}, {1, 1, 4, 3.7F}, "linear", "asymmetric"},
      {{1, 2, 64, 64}, {1, 1, 0.5F, 0.5F}, "linear", "half_pixel"},
      {{1, 2, 41, 100}, {1, 1, 1.3F, 0.3F}, "linear", "pytorch_half_pixel"},
      {{1, 2, 41, 100}, {1, 1, 0.4F, 2.3F}, "linear", "half_pixel_symmetric"},
      {{1, 2, 17, 50}, {1, 1, 2, 2}, "cubic", "half_pixel"},
      {{1, 2, 50, 67}, {1, 1, 0.7F, 0.6F}, "cubic", "align_corners"},
      {{1, 1, 50, 67}, {1, 1, 0.3F, 0.2F}, "linear", "half_pixel", true},
      {{1, 1, 30, 67}, {1, 1, 2, 0.2F}, "cubic", "half_pixel", true},
      {{1, 2, 20, 40}, {1, 1, 2, 1.5F}, "linear", "tf_crop_and_resize"},
      {{1, 2, 20, 40}, {1, 1, 1, 2}, "linear", "half_pixel"},
      {{1, 2, 20, 40}, {1, 1, 2, 1}, "linear", "half_pixel"},
      {{3, 300}, {1, 1.5F}, "linear", "half_pixel"},
      {{1, 1, 2, 2}, {1, 1, 30, 40}, "linear", "half_pixel"},
      {{1, 1, 3, 7}, {1, 1, 2, 9}, "linear", "half_pixel"},
      {{1, 1, 600, 20}, {1, 1, 2, 2}, "linear", "half_pixel"},
      {{1, 3, 20, 40}, {1, 1, 2, 2}, "nearest", "half_pixel"},
      {{1, 3, 20, 37}, {1, 1, 1.7F, 2.3F}, "nearest", "asymmetric"},
      {{1, 3, 20, 40}, {1, 1, 0.5F, 0.7F}, "nearest", "align_corners"},
  };
  for (const Case& test : cases) {
    for (const bool channels_last : {false, true}) {
      expect_resampled(test, DType::kF32, channels_last, 1e-5);
      expect_resampled(test, DType::kF64, channels_last, 1e-12);
      expect_resampled(test, DType::kF16, channels_last, 5e-3);
      if (test.mode != "cubic") expect_resampled(test, DType::kI32, channels_last, 0.5 + 1e-9);
    }
  }
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
