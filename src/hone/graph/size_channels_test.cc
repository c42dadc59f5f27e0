// Channels that vary, and the sides of matrices.
#include "hone/graph/size_check.h"

namespace hone::graph {
namespace {

// Windows of one channel, and sums over neighbouring ones.
TEST(size_channels, channels_that_vary) {
  const Shape kernel = {2, 3}, pads = {1, 1, 0, 2};
  const std::vector<std::pair<std::string, Attrs>> cases = {
      {"MaxPool", {{"kernel_shape", kernel}}},
      {"MaxPool", {{"kernel_shape", kernel}, {"pads", pads}, {"strides", Shape{2, 1}}}},
      {"AveragePool", {{"kernel_shape", kernel}}},
      {"AveragePool", {{"kernel_shape", kernel}, {"pads", pads}}},
      {"AveragePool", {{"kernel_shape", kernel}, {"auto_pad", std::string("SAME_LOWER")}}},
      {"LRN", {{"size", int64_t{3}}, {"alpha", 0.5F}}},
      {"LRN", {{"size", int64_t{4}}, {"alpha", 0.5F}, {"bias", 2.0F}}},
  };
  for (const auto& [type, attributes] : cases) {
    SCOPED_TRACE(type);
    for (const std::string side : {"6", "h"}) {
      TestModel model(19);
      model.open_input("x", {"N", "c", side, "5"}).node(type, {"x"}, {"y"}, attributes).output("y");
      Ranges ranges = {{"N", {{1, 2, ""}}}, {"c", {{1, 7, ""}}}};
      std::vector<std::vector<int64_t>> sizes = {{2, 7}, {1, 1}, {2, 3}, {1, 6}};
      if (side == "h") {
        ranges["h"] = {{2, 6, ""}};
        for (size_t i = 0; i < sizes.size(); ++i) sizes[i].push_back(6 - static_cast<int64_t>(i));
      }
      expect_right(model, ranges, sizes);
    }
  }
}

TEST(size_channels, determinants_of_matrices_that_vary) {
  TestModel model(19);
  model.open_input("x", {"N", "n", "n"}).node("Det", {"x"}, {"y"}).output("y");
  expect_right(model, {{"N", {{1, 3, ""}}}, {"n", {{1, 6, ""}}}}, {{3, 6}, {1, 1}, {2, 4}, {3, 5}});
}

}  // namespace
}  // namespace hone::graph
