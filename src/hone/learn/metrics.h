// learn/metrics.h - measures how well predicted times rank and explain measured ones. Lower times
// are faster. Both spans have one element per trial of a task.
#pragma once

#include <span>
#include <vector>

namespace hone::learn {

// Returns, over all pairs whose measured times differ, the share that the prediction orders
// correctly; a tie of predictions counts a half. It is 1 if there is no such pair. Pairs whose
// times differ by at most the factor `least_ratio` are left out.
[[nodiscard]] double pair_accuracy(std::span<const double> measured,
                                   std::span<const double> predicted, double least_ratio = 1);

// Returns the best measured time divided by the best measured time among the k candidates that are
// predicted to be fastest, which is what k measurements reach. Among equal predictions the slowest
// candidate comes first.
[[nodiscard]] double top_score(std::span<const double> measured, std::span<const double> predicted,
                               int k);

// Returns the mean over i = 1 .. k of top_score() with i measurements, which tells how soon the
// best is found.
[[nodiscard]] double peak_score(std::span<const double> measured, std::span<const double> predicted,
                                int k);

// Returns the sum of the k best measured times divided by the sum of the measured times of the k
// candidates that are predicted to be fastest (Tuna, section V.B): how good a whole choice is, not
// only the best of it. Equal predictions are ordered as in top_score(). There must be k candidates.
[[nodiscard]] double sum_score(std::span<const double> measured, std::span<const double> predicted,
                               int k);

// Returns the best time / time of each, 1 for a time that is not above 0.
[[nodiscard]] std::vector<double> speeds(std::span<const double> seconds);

// Returns the mean of the squared differences.
[[nodiscard]] double squared_error(std::span<const double> actual,
                                   std::span<const double> predicted);

// Returns 1 - squared error / variance of `actual`: 1 is perfect, 0 is as good as the mean. It is 0
// if `actual` does not vary.
[[nodiscard]] double r_squared(std::span<const double> actual, std::span<const double> predicted);

// Computes r_squared of values that arrive one by one, such as those of many tasks.
class Determination {
 public:
  void add(double actual, double predicted);
  void add(const Determination& others);
  [[nodiscard]] double r_squared() const;

 private:
  double count_ = 0, mean_ = 0;
  double variation_ = 0;  // sum of squared differences from the mean
  double error_ = 0;      // sum of squared differences from the predictions
};

}  // namespace hone::learn
