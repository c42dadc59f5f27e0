// tools/hone/table.h - numbers for people: aligned tables, times and counts with units.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hone::tool {

// Columns as wide as their widest cell; the first few are aligned left, the others right.
class Table {
 public:
  explicit Table(std::vector<std::string> header, size_t left_columns = 1)
      : rows_{std::move(header)}, left_columns_(left_columns) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] std::string text() const;  // one line per row, and a rule under the header

 private:
  std::vector<std::vector<std::string>> rows_;
  size_t left_columns_;
};

[[nodiscard]] std::string format_seconds(double seconds);  // "12.3 us", "4.56 ms"; "-" for 0
[[nodiscard]] std::string format_count(double count);      // "950", "12.3k", "4.56M"
// At most `width` characters, the middle of a longer text left out.
[[nodiscard]] std::string shorten(std::string_view text, size_t width);

}  // namespace hone::tool
