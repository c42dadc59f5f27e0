// base/split_options.h - splits a name and its options, as users type them.
#pragma once

#include <string_view>
#include <utility>

namespace hone {

// Splits "NAME:depth=6,rate=0.3" at the last ':' that has a '=' behind it, as a file's name may
// have others. Without such options the second text is empty.
[[nodiscard]] inline std::pair<std::string_view, std::string_view> split_options(
    std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.find('=', colon) == std::string_view::npos)
    return {text, {}};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

}  // namespace hone
