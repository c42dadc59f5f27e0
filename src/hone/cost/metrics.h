// cost/metrics.h - how well predicted times rank and explain measured ones. Pure functions of the
// trials of one task; lower is faster; both spans have the same length.
#pragma once

#include <span>

namespace hone::cost {

// Of all pairs whose measured times differ, the share that the prediction puts in the right order;
// a tie of predictions counts a half. 1 if there is no such pair.
[[nodiscard]] double pair_accuracy(std::span<const double> measured,
                                   std::span<const double> predicted);

// The best measured time / the best measured time among the k candidates that are predicted to be
// fastest: what is reached with k measurements. Of tied predictions the slowest come first.
[[nodiscard]] double top_score(std::span<const double> measured, std::span<const double> predicted,
                               int k);

// 1 - squared error / variance of `actual`: 1 is perfect, 0 as good as knowing the mean. 0 if
// `actual` does not vary.
[[nodiscard]] double r_squared(std::span<const double> actual, std::span<const double> predicted);

}  // namespace hone::cost
