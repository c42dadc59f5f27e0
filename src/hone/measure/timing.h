// measure/timing.h - how often to run a candidate: a clearly slow one once or twice, one near the
// best until its time is known well, none longer than the cap.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace hone::measure {

struct TimingOptions {
  double sample_seconds = 3e-4;  // a sample is as many runs as take about this long
  int min_samples = 5;
  int max_samples = 40;
  double precision = 0.02;    // half the interval, relative to the centre, that is good enough
  double max_seconds = 0.15;  // of running
  double best = std::numeric_limits<double>::infinity();  // seconds a run of the best so far
  double stop_ratio = 1.5;     // so much slower in the first runs than the best: stop
  double slower_ratio = 1.05;  // surely slower than this times the best: stop
};

struct Timing {
  std::vector<double> samples;  // seconds a run, at least one
  double centre = 0, low = 0, high = 0;
  int64_t runs = 0;            // all, warm-up included
  bool stopped_early = false;  // clearly slower than the best
};

// `run(n)` runs the candidate n times in a row and returns the seconds that took.
[[nodiscard]] Timing time_adaptively(const std::function<double(int64_t)>& run,
                                     const TimingOptions& options);

}  // namespace hone::measure
