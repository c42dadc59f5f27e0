// trial/statistics.h - statistics of run times. Noise on a machine is one-sided, comes in bursts
// and has no useful variance, so all of this is based on order, not on moments.
#pragma once

#include <span>

namespace hone::trial {

struct Interval {
  double low = 0, high = 0;
};

// All functions need at least one sample.
[[nodiscard]] double median(std::span<const double> samples);
// Returns the mean of the middle half (25% trimmed at both ends), or the median if there are fewer
// than 4 samples.
[[nodiscard]] double robust_centre(std::span<const double> samples);
// Returns an interval of order statistics around the median with a coverage of at least
// `confidence` (binomial), whatever the distribution is. If there are too few samples for that
// (fewer than 6 at 0.95), it spans all of them.
[[nodiscard]] Interval median_interval(std::span<const double> samples, double confidence = 0.95);

// Decides, after each sample, whether the median lies above a bound, by Wald's sequential
// probability ratio test (1945) of P(sample > bound) = 0.95 against 0.5. If the median is at or
// below the bound, the probability of calling it slower is at most 5%.
class SlowerTest {
 public:
  explicit SlowerTest(double bound) : bound_(bound) {}
  // Adds a sample. Returns true once it is decided, which takes at least 5 samples above the bound.
  bool add(double sample);

 private:
  double bound_;
  double log_ratio_ = 0;
  bool slower_ = false;
};

// Decides, after each pair, which of two programs is faster when both run alternately. A
// disturbance affects both, so only the sign of each pair's difference counts, and nothing is
// assumed about the noise except that with equal times both win equally often. The ratio of
// likelihoods, a mixture of probabilities to win against 1/2, is then a martingale: whenever one
// stops, the probability that it has exceeded 1 / (1 - confidence) is at most 1 - confidence (Ville
// 1939).
class PairTest {
 public:
  explicit PairTest(double confidence = 0.95) : bound_(1 / (1 - confidence)) {}
  void add(double first, double second);
  [[nodiscard]] bool first_is_faster() const { return first_; }  // takes 6 wins in a row at 0.95
  [[nodiscard]] bool second_is_faster() const { return second_; }
  [[nodiscard]] bool decided() const { return first_ || second_; }

 private:
  double bound_;
  int wins_ = 0, losses_ = 0;
  bool first_ = false, second_ = false;
};

}  // namespace hone::trial
