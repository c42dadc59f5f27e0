// tools/hone/html_text.h - texts inside HTML.
#pragma once

#include <string>
#include <string_view>

namespace hone::tool {

// Returns the text with '<' and '&' escaped, so that none of it is a tag or an entity.
[[nodiscard]] inline std::string escape_html(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  }
  return result;
}

}  // namespace hone::tool
