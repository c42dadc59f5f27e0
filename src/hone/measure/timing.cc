#include "hone/measure/timing.h"

#include <algorithm>
#include <cmath>

#include "hone/measure/statistics.h"

namespace hone::measure {
namespace {

// The first run pays for page faults, cold code and sleeping threads: only beyond this factor does
// it prove by itself that a candidate is slow.
constexpr double kFirstRunFactor = 3;

void summarise(Timing& t) {
  t.centre = robust_centre(t.samples);
  const Interval interval = median_interval(t.samples);
  t.low = interval.low, t.high = interval.high;
}

}  // namespace

Timing time_adaptively(const std::function<double(int64_t)>& run, const TimingOptions& o) {
  Timing t;
  double spent = 0;
  const auto once = [&](int64_t n) {
    const double seconds =
        std::max(run(n), 1e-9 * static_cast<double>(n));  // the clock's resolution
    t.runs += n, spent += seconds;
    return seconds / static_cast<double>(n);
  };
  const auto finish = [&](bool early) {
    t.stopped_early = early;
    summarise(t);
    return t;
  };

  const double first = once(1);
  if (first > o.best * o.stop_ratio * kFirstRunFactor || spent > o.max_seconds) {
    t.samples = {first};
    return finish(first > o.best * o.stop_ratio);
  }
  const double second = once(1);
  if (second > o.best * o.stop_ratio || spent > o.max_seconds) {
    t.samples = {second};
    return finish(second > o.best * o.stop_ratio);
  }

  const auto repeats =
      std::max<int64_t>(1, std::llround(std::ceil(o.sample_seconds / std::min(first, second))));
  SlowerTest slower(o.best * o.slower_ratio);
  while (static_cast<int>(t.samples.size()) < o.max_samples) {
    t.samples.push_back(once(repeats));
    if (slower.add(t.samples.back())) return finish(true);
    if (spent >= o.max_seconds) break;
    if (static_cast<int>(t.samples.size()) < o.min_samples) continue;
    summarise(t);
    if ((t.high - t.low) / 2 <= o.precision * t.centre) break;
  }
  return finish(false);
}

}  // namespace hone::measure
