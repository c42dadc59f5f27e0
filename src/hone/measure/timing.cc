#include "hone/measure/timing.h"

#include <algorithm>
#include <cmath>

#include "hone/trial/statistics.h"

namespace hone::measure {
namespace {

// The first run pays for page faults, cold code and sleeping threads: only beyond this factor does
// it prove by itself that a candidate is slow.
constexpr double kFirstRunFactor = 3;
// The time between the runs of a sample is at most this many times the sample's, unless that leaves
// fewer runs than kLeastRuns.
constexpr double kMostBetween = 4;
constexpr double kLeastRuns = 4;  // smallest number of runs for which that limit holds

// Runs of a sample, if one takes so many seconds.
int64_t runs_of_sample(double sample_seconds, double run, double between) {
  double runs = std::ceil(sample_seconds / run);
  if (between > 0)
    runs = std::min(runs, std::max(kLeastRuns, kMostBetween * sample_seconds / between));
  return std::max<int64_t>(1, std::llround(runs));
}

}  // namespace

trial::Timing time_adaptively(const std::function<double(int64_t)>& run, const TimingOptions& o,
                              double between) {
  trial::Timing t;
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

  const int64_t repeats = runs_of_sample(o.sample_seconds, std::min(first, second), between);
  trial::SlowerTest slower(o.best * o.slower_ratio);
  if (repeats == 1) {  // as long as a sample: it is one
    t.samples.push_back(second);
    (void)slower.add(second);
  }
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

trial::Duel duel(const std::function<double(int64_t)>& challenger,
                 const std::function<double(int64_t)>& incumbent, const trial::DuelOptions& o,
                 double between) {
  trial::Duel d;
  trial::PairTest test;
  double spent = 0;
  const auto sample = [&](const std::function<double(int64_t)>& run, int64_t n) {
    const double seconds = std::max(run(n), 1e-9 * static_cast<double>(n));
    spent += seconds;
    return seconds / static_cast<double>(n);
  };
  const double least = std::min(sample(incumbent, 1), sample(challenger, 1));
  const int64_t repeats = runs_of_sample(o.sample_seconds, least, between);
  while (static_cast<int>(d.pairs()) < o.max_pairs) {
    double a = 0, b = 0;
    if (d.pairs() % 2 == 0) {
      b = sample(incumbent, repeats), a = sample(challenger, repeats);
    } else {
      a = sample(challenger, repeats), b = sample(incumbent, repeats);
    }
    d.challenger.push_back(a), d.incumbent.push_back(b);
    test.add(a, b);
    if (test.decided() || spent >= o.hard_seconds) break;
    if (spent >= o.max_seconds && (d.pairs() >= 7 || judge(d, o) != trial::Verdict::kUndecided))
      break;
  }
  return d;
}

}  // namespace hone::measure
