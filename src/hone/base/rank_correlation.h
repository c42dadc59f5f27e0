// base/rank_correlation.h - how alike two rows of numbers are ordered (Spearman).
#pragma once

#include <span>
#include <vector>

namespace hone {

// Returns the ranks of the values less their mean, as a vector of length 1; all 0 if the values do
// not vary. Equal values share their ranks.
[[nodiscard]] std::vector<float> unit_ranks(std::span<const float> values);
// Returns the sum of the products of two rows of equal length. That of unit_ranks() is spearman().
[[nodiscard]] double inner_product(std::span<const float> a, std::span<const float> b);
// Returns the correlation of the ranks of as many values, from -1 to 1. It is 0 if one of them does
// not vary.
[[nodiscard]] double spearman(std::span<const float> a, std::span<const float> b);

}  // namespace hone
