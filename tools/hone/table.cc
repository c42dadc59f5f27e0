#include "table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "hone/base/printable.h"

namespace hone::tool {
namespace {

// Three significant digits.
std::string three_digits(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

}  // namespace

std::string Table::text() const {
  std::vector<std::vector<std::string>> rows = rows_;  // as they are shown
  std::vector<size_t> widths;
  for (auto& row : rows) {
    for (std::string& cell : row) cell = printable(cell);
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows[r].size(); ++i) {
      if (i > 0) line += "  ";
      line += i < left_columns_ ? fmt::format("{:<{}}", rows[r][i], widths[i])
                                : fmt::format("{:>{}}", rows[r][i], widths[i]);
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
  const std::string shown = printable(text);
  if (shown.size() <= width) return shown;
  if (width < 5) return std::string(whole_characters(shown, width));
  const size_t head = (width - 2) / 2, tail = width - 2 - head;
  // The end begins with a whole character, too.
  const std::string_view all = shown;
  size_t end = all.size() - tail;
  while (end < all.size() && whole_characters(all, end).size() != end) ++end;
  return fmt::format("{}..{}", whole_characters(all, head), all.substr(end));
}

}  // namespace hone::tool
