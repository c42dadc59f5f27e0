// measure/statistics.h - what samples of a run time say: noise on a machine is one-sided, comes in
// bursts and has no variance to speak of, so everything here is by order, not by moments.
#pragma once

#include <span>

namespace hone::measure {

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

}  // namespace hone::measure
