// measure/timing.h - decides how often to run a candidate: a clearly slow one once or twice, one
// near the best until its time is known well, and none longer than a limit. It also decides how
// often to run a candidate and the best so far alternately until it is certain which one is faster.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include "hone/trial/timing.h"

namespace hone::measure {

struct TimingOptions {
  double sample_seconds = 3e-4;  // a sample is the number of runs that takes about this long
  int min_samples = 5;
  int max_samples = 40;
  double precision = 0.02;    // sufficient half width of the interval, relative to the centre
  double max_seconds = 0.15;  // limit of the run time
  double best = std::numeric_limits<double>::infinity();  // seconds per run of the best so far
  double stop_ratio = 1.5;     // stops if the first runs are this much slower than the best
  double slower_ratio = 1.05;  // stops if it is certainly slower than this times the best
};

// Times a candidate. `run(n)` runs it n times in a row and returns the seconds that took. `between`
// is the time before each run that does not count, in which caches are brought into the state that
// a model leaves them in; if that takes far longer than the runs, a sample has fewer of them.
[[nodiscard]] trial::Timing time_adaptively(const std::function<double(int64_t)>& run,
                                            const TimingOptions& options, double between = 0);

// Runs both alternately. Both run once before, and the challenger comes first in every other pair.
[[nodiscard]] trial::Duel duel(const std::function<double(int64_t)>& challenger,
                               const std::function<double(int64_t)>& incumbent,
                               const trial::DuelOptions& options, double between = 0);

}  // namespace hone::measure
