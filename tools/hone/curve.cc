#include "curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "html_text.h"

namespace hone::tool {
namespace {

constexpr double kWidth = 720, kHeight = 300, kLeft = 70, kRight = 150, kTop = 30, kBottom = 40;
constexpr std::array<const char*, 6> kColours = {"#1b6ca8", "#d1495b", "#3c896d",
                                                 "#b8860b", "#6a4c93", "#444444"};

struct Range {
  double low = INFINITY, high = -INFINITY;
  void add(double value) { low = std::min(low, value), high = std::max(high, value); }
  [[nodiscard]] double place(double value) const {
    return high > low ? (value - low) / (high - low) : 0.5;
  }
};

std::string text(double x, double y, const char* anchor, const std::string& what) {
  return fmt::format("<text x='{:.0f}' y='{:.0f}' text-anchor='{}'>{}</text>\n", x, y, anchor,
                     what);
}

std::string to_svg(const Figure& figure) {
  Range xs, ys;
  for (const Line& line : figure.lines) {
    for (const auto& [x, y] : line.points) xs.add(x), ys.add(y);
  }
  const double width = kWidth - kLeft - kRight, height = kHeight - kTop - kBottom;
  const auto at_x = [&](double x) { return kLeft + width * xs.place(x); };
  const auto at_y = [&](double y) { return kTop + height * (1 - ys.place(y)); };
  std::string svg = fmt::format("<svg viewBox='0 0 {} {}' width='{}'>\n", kWidth, kHeight, kWidth);
  svg += text(kLeft, kTop - 12, "start", escape_html(figure.title));
  svg += fmt::format("<rect x='{}' y='{}' width='{}' height='{}' fill='none' stroke='#999'/>\n",
                     kLeft, kTop, width, height);
  if (xs.low <= xs.high) {
    for (int i = 0; i <= 4; ++i) {
      const double y = ys.low + (ys.high - ys.low) * i / 4;
      svg += text(kLeft - 6, at_y(y) + 4, "end", fmt::format("{:.4g}", y));
    }
    svg += text(kLeft, kHeight - 22, "middle", fmt::format("{:.4g}", xs.low));
    svg += text(kLeft + width, kHeight - 22, "middle", fmt::format("{:.4g}", xs.high));
  }
  svg += text(kLeft + width / 2, kHeight - 8, "middle", escape_html(figure.x + ": " + figure.y));
  size_t number = 0;
  for (const Line& line : figure.lines) {
    if (line.points.empty()) continue;
    const char* colour = kColours[number % kColours.size()];
    std::string points;
    for (const auto& [x, y] : line.points)
      points += fmt::format("{:.1f},{:.1f} ", at_x(x), at_y(y));
    svg += fmt::format("<polyline points='{}' fill='none' stroke='{}' stroke-width='1.5'/>\n",
                       points, colour);
    svg +=
        fmt::format("<text x='{:.0f}' y='{:.0f}' fill='{}'>{}</text>\n", kWidth - kRight + 8,
                    kTop + 14 + 18 * static_cast<double>(number), colour, escape_html(line.name));
    ++number;
  }
  return svg + "</svg>\n";
}

}  // namespace

std::string to_html(const std::string& title, const std::vector<Figure>& figures) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<meta charset='utf-8'>\n<title>{0}</title>\n"
      "<style>body {{font: 14px sans-serif}} text {{font: 12px "
      "sans-serif}}</style>\n<h1>{0}</h1>\n",
      escape_html(title));
  for (const Figure& figure : figures) html += to_svg(figure);
  return html;
}

}  // namespace hone::tool
