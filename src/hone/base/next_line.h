// base/next_line.h - reads text files whose every line has an end, line by line.
#pragma once

#include <string_view>

namespace hone {

// Takes the next line off the text and returns it without its end; "" if there is none.
[[nodiscard]] inline std::string_view next_line(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return {};
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

}  // namespace hone
