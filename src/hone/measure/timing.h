// measure/timing.h - how often to run a candidate: a clearly slow one once or twice, one near the
// best until its time is known well, none longer than the cap. And a duel: a candidate and the best
// so far in turns, until it is sure which one is faster.
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

// Centre and interval of its samples.
void summarise(Timing& timing);
// `run(n)` runs the candidate n times in a row and returns the seconds that took. `between`:
// seconds before each run that do not count, while caches are brought into the state that a model
// leaves them in; where that takes far longer than the runs, a sample has fewer of them.
[[nodiscard]] Timing time_adaptively(const std::function<double(int64_t)>& run,
                                     const TimingOptions& options, double between = 0);

struct DuelOptions {
  double sample_seconds = 3e-4;  // a sample is as many runs as take about this long
  int max_pairs = 40;
  double max_seconds = 0.3;  // of running, but 7 pairs even so: a test of signs needs 6 ...
  double hard_seconds = 3;   // ... unless that takes longer than this
  // From max_seconds on, 3 pairs that all differ by more than this factor are enough: in slow runs
  // interruptions average out.
  double decisive = 1.5;
};

struct Duel {
  std::vector<double> challenger, incumbent;  // seconds a run, in pairs
  [[nodiscard]] size_t pairs() const { return challenger.size(); }
};

enum class Verdict : uint8_t { kUndecided, kFaster, kSlower };

// Both run once before, and in every other pair the challenger comes first.
[[nodiscard]] Duel duel(const std::function<double(int64_t)>& challenger,
                        const std::function<double(int64_t)>& incumbent, const DuelOptions& options,
                        double between = 0);
// Whether the challenger is faster, at 95% confidence.
[[nodiscard]] Verdict judge(const Duel& duel, const DuelOptions& options = {});
// Challenger's time / incumbent's time: the median over pairs. Needs a pair.
[[nodiscard]] double duel_ratio(const Duel& duel);

}  // namespace hone::measure
