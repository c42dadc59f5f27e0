// tools/hone/curve.h - a figure of lines as a small HTML file that needs nothing else.
#pragma once

#include <string>
#include <vector>

namespace hone::tool {

struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points;
};
struct Figure {
  std::string title, x, y;
  std::vector<Line> lines;  // those without points are left out
};
// The figures below each other.
[[nodiscard]] std::string to_html(const std::string& title, const std::vector<Figure>& figures);

}  // namespace hone::tool
