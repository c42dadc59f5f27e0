#include "curve.h"

#include <gtest/gtest.h>

namespace hone::tool {
namespace {

TEST(curve, draws_each_line_within_the_frame_and_names_it) {
  const std::string html = to_html(
      "a < b", {{"loss", "epoch", "loss", {{"train", {{1, 0.5}, {2, 0.25}}}, {"none", {}}}}});
  EXPECT_NE(html.find("<h1>a &lt; b</h1>"), std::string::npos);
  EXPECT_NE(html.find("points='70.0,30.0 570.0,260.0 '"), std::string::npos) << html;
  EXPECT_NE(html.find(">train</text>"), std::string::npos);
  EXPECT_EQ(html.find(">none</text>"), std::string::npos);
  EXPECT_EQ(html.find("nan"), std::string::npos);
}

TEST(curve, a_figure_without_points_is_an_empty_frame) {
  const std::string html = to_html("t", {{"loss", "epoch", "loss", {}}});
  EXPECT_NE(html.find("<rect"), std::string::npos);
  EXPECT_EQ(html.find("inf"), std::string::npos);
}

}  // namespace
}  // namespace hone::tool
