// base/closest_name.h - hints for names that were mistyped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hone {

// Returns how many letters have to be added, taken away, replaced or exchanged with their neighbour
// to make one name of the other (the optimal string alignment distance). Capitals count as small
// letters. The time is the product of the lengths.
[[nodiscard]] size_t edit_distance(std::string_view from, std::string_view to);

// Returns "; did you mean 'batch'?", or "" if no name is like the given one: letters that are
// missing, too many, other ones or exchanged with a neighbour are at most a third of it, and one at
// least. Capitals count as small letters. Of several names that are as close, it is the first.
[[nodiscard]] std::string did_you_mean(std::string_view given,
                                       const std::vector<std::string>& names);

}  // namespace hone
