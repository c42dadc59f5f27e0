// graph/some_names.h - names in messages: a message stays one line that is read, so of many names
// it has the number and the first few.
#pragma once

#include <fmt/ranges.h>

#include <string>
#include <vector>

namespace hone::graph {

inline constexpr size_t kShownNames = 3;

// Returns "'a', 'b', 'c'", or "'a', 'b', 'c' and 297 more".
[[nodiscard]] inline std::string some_names(const std::vector<std::string>& names) {
  const size_t shown = names.size() <= kShownNames + 1 ? names.size() : kShownNames;
  std::string text;
  for (size_t i = 0; i < shown; ++i)
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", names[i]);
  return shown == names.size() ? text : fmt::format("{} and {} more", text, names.size() - shown);
}

// Returns "node 'a'", "nodes 'a', 'b'" or "300 nodes, such as 'a', 'b', 'c'".
[[nodiscard]] inline std::string some_nodes(const std::vector<std::string>& names) {
  if (names.size() <= kShownNames + 1)
    return fmt::format("{} {}", names.size() == 1 ? "node" : "nodes", some_names(names));
  const std::vector<std::string> first(names.begin(), names.begin() + kShownNames);
  return fmt::format("{} nodes, such as {}", names.size(), some_names(first));
}

}  // namespace hone::graph
