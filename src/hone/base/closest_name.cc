#include "hone/base/closest_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace hone {
namespace {

bool is_same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

}  // namespace

size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<size_t> before_last, last(to.size() + 1), row(to.size() + 1);
  for (size_t j = 0; j <= to.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t differs = is_same_letter(from[i - 1], to[j - 1]) ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + differs});
      if (i > 1 && j > 1 && is_same_letter(from[i - 1], to[j - 2]) &&
          is_same_letter(from[i - 2], to[j - 1]))
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = last;
    last = row;
  }
  return last[to.size()];
}

std::string did_you_mean(std::string_view given, const std::vector<std::string>& names) {
  constexpr size_t kLongest = 256;  // letters: the time is the product of the lengths
  if (given.size() > kLongest) return "";
  const std::string* closest = nullptr;
  size_t least = std::max<size_t>(given.size() / 3, 1) + 1;
  for (const std::string& name : names) {
    if (name.empty() || name.size() > kLongest || name == given) continue;
    const size_t letters = edit_distance(given, name);
    // A name of which no letter is left is another one.
    if (letters >= least || letters >= std::max(name.size(), given.size())) continue;
    least = letters;
    closest = &name;
  }
  return closest == nullptr ? "" : fmt::format("; did you mean '{}'?", *closest);
}

}  // namespace hone
