// measure/timing.h - how often to run a candidate: a clearly slow one once or twice, one near the
// best until its time is known well, none longer than the cap. And how often to run it and the best
// so far in turns, until it is sure which one is faster.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include "hone/trial/timing.h"

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

// `run(n)` runs the candidate n times in a row and returns the seconds that took. `between`:
// seconds before each run that do not count, while caches are brought into the state that a model
// leaves them in; where that takes far longer than the runs, a sample has fewer of them.
[[nodiscard]] trial::Timing time_adaptively(const std::function<double(int64_t)>& run,
                                            const TimingOptions& options, double between = 0);

// Both run once before, and in every other pair the challenger comes first.
[[nodiscard]] trial::Duel duel(const std::function<double(int64_t)>& challenger,
                               const std::function<double(int64_t)>& incumbent,
                               const trial::DuelOptions& options, double between = 0);

}  // namespace hone::measure
