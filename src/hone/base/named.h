// base/named.h - tables that map names to values, such as the values of an option.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hone {

template <typename T>
using Named = std::pair<std::string_view, T>;

template <typename T, size_t N>
[[nodiscard]] std::optional<T> find_named(const Named<T> (&table)[N], std::string_view name) {
  for (const auto& [text, value] : table) {
    if (text == name) return value;
  }
  return std::nullopt;
}

// Returns the names in the order of the table.
template <typename T, size_t N>
[[nodiscard]] std::vector<std::string> names_of(const Named<T> (&table)[N]) {
  std::vector<std::string> names;
  for (const auto& [text, value] : table) names.emplace_back(text);
  return names;
}

}  // namespace hone
