#include "table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace hone::tool {
namespace {

// Three significant digits.
std::string three_digits(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

}  // namespace

std::string Table::text() const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows_[r].size(); ++i) {
      if (i > 0) line += "  ";
      line += i < left_columns_ ? fmt::format("{:<{}}", rows_[r][i], widths[i])
                                : fmt::format("{:>{}}", rows_[r][i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (r != 0) continue;
    size_t rule = 2 * (widths.size() - 1);
    for (const size_t width : widths) rule += width;
    text += std::string(rule, '-') + "\n";
  }
  return text;
}

std::string format_seconds(double seconds) {
  if (!(seconds > 0)) return "-";
  if (seconds < 0.9995e-6) return three_digits(seconds * 1e9) + " ns";
  if (seconds < 0.9995e-3) return three_digits(seconds * 1e6) + " us";
  if (seconds < 0.9995) return three_digits(seconds * 1e3) + " ms";
  return three_digits(seconds) + " s";
}

std::string format_count(double count) {
  if (count < 999.5) return fmt::format("{:.0f}", count);
  if (count < 0.9995e6) return three_digits(count * 1e-3) + "k";
  return three_digits(count * 1e-6) + "M";
}

std::string shorten(std::string_view text, size_t width) {
  if (text.size() <= width) return std::string(text);
  if (width < 5) return std::string(text.substr(0, width));
  const size_t head = (width - 2) / 2, tail = width - 2 - head;
  return fmt::format("{}..{}", text.substr(0, head), text.substr(text.size() - tail));
}

}  // namespace hone::tool
