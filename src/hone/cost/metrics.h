// cost/metrics.h - how well predicted times rank and explain measured ones. Lower is faster; both
// spans have the same length: the trials of one task.
#pragma once

#include <span>

namespace hone::cost {

// Of all pairs whose measured times differ, the share that the prediction puts in the right order;
// a tie of predictions counts a half. 1 if there is no such pair. `least_ratio`: pairs whose slower
// one takes no longer than so many times the faster one are left out.
[[nodiscard]] double pair_accuracy(std::span<const double> measured,
                                   std::span<const double> predicted, double least_ratio = 1);

// The best measured time / the best measured time among the k candidates that are predicted to be
// fastest: what is reached with k measurements. Of tied predictions the slowest come first.
[[nodiscard]] double top_score(std::span<const double> measured, std::span<const double> predicted,
                               int k);

// The mean over i = 1 .. k of top_score() with i measurements: how soon the best comes.
[[nodiscard]] double peak_score(std::span<const double> measured, std::span<const double> predicted,
                                int k);

// The mean of squared differences.
[[nodiscard]] double squared_error(std::span<const double> actual,
                                   std::span<const double> predicted);

// 1 - squared error / variance of `actual`: 1 is perfect, 0 as good as knowing the mean. 0 if
// `actual` does not vary.
[[nodiscard]] double r_squared(std::span<const double> actual, std::span<const double> predicted);

// The same of values that come one by one, such as those of many tasks.
class Determination {
 public:
  void add(double actual, double predicted);
  void add(const Determination& others);
  [[nodiscard]] double r_squared() const;

 private:
  double count_ = 0, mean_ = 0;
  double variation_ = 0;  // sum of squared differences from the mean
  double error_ = 0;      // from what was predicted
};

}  // namespace hone::cost
