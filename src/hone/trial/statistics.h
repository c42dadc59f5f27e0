// trial/statistics.h - what samples of a run time say: noise on a machine is one-sided, comes in
// bursts and has no variance to speak of, so everything here is by order, not by moments.
#pragma once

#include <span>

namespace hone::trial {

struct Interval {
  double low = 0, high = 0;
};

// All need at least one sample.
[[nodiscard]] double median(std::span<const double> samples);
// The mean of the middle half (25% trimmed at both ends); the median of fewer than 4 samples.
[[nodiscard]] double robust_centre(std::span<const double> samples);
// Free of assumptions about the distribution: order statistics around the median whose coverage is
// at least `confidence` (binomial); all samples if they are too few for that (fewer than 6 at
// 0.95).
[[nodiscard]] Interval median_interval(std::span<const double> samples, double confidence = 0.95);

// Decides, a sample at a time, whether the median lies above a bound: Wald's sequential probability
// ratio test (1945) of P(sample > bound) = 0.95 against 0.5. The chance to call a time slower whose
// median is at or below the bound is at most 5%.
class SlowerTest {
 public:
  explicit SlowerTest(double bound) : bound_(bound) {}
  // True once it is decided; needs 5 samples above the bound at least.
  bool add(double sample);

 private:
  double bound_;
  double log_ratio_ = 0;
  bool slower_ = false;
};

// Decides, a pair at a time, which of two is faster when both run in turns: what disturbs one
// disturbs the other, so only the sign of each pair's difference counts and nothing is assumed of
// the noise but that equal times win as often as they lose. The ratio of likelihoods, a mixture of
// chances to win against 1/2, is a martingale then: wherever one stops, it has exceeded
// 1 / (1 - confidence) with a probability of at most 1 - confidence (Ville 1939).
class PairTest {
 public:
  explicit PairTest(double confidence = 0.95) : bound_(1 / (1 - confidence)) {}
  void add(double first, double second);
  [[nodiscard]] bool first_is_faster() const { return first_; }  // 6 wins in a row at 0.95
  [[nodiscard]] bool second_is_faster() const { return second_; }
  [[nodiscard]] bool decided() const { return first_ || second_; }

 private:
  double bound_;
  int wins_ = 0, losses_ = 0;
  bool first_ = false, second_ = false;
};

}  // namespace hone::trial
