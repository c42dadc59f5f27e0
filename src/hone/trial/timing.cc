#include "hone/trial/timing.h"

#include "hone/base/assert.h"
#include "hone/trial/statistics.h"

namespace hone::trial {

void summarise(Timing& t) {
  t.centre = robust_centre(t.samples);
  const Interval interval = median_interval(t.samples);
  t.low = interval.low, t.high = interval.high;
}

Verdict judge(const Duel& d, const DuelOptions& o) {
  PairTest test;
  double spent = 0;
  bool all_faster = d.pairs() >= 3, all_slower = d.pairs() >= 3;
  for (size_t i = 0; i < d.pairs(); ++i) {
    test.add(d.challenger[i], d.incumbent[i]);
    spent += d.challenger[i] + d.incumbent[i];
    all_faster = all_faster && d.challenger[i] * o.decisive < d.incumbent[i];
    all_slower = all_slower && d.challenger[i] > o.decisive * d.incumbent[i];
  }
  const bool slow_runs = spent >= o.max_seconds / 2;  // the warm-up and repeats aside
  if (test.first_is_faster() || (slow_runs && all_faster)) return Verdict::kFaster;
  if (test.second_is_faster() || (slow_runs && all_slower)) return Verdict::kSlower;
  return Verdict::kUndecided;
}

double duel_ratio(const Duel& d) {
  HONE_ASSERT(d.pairs() > 0, "a duel without pairs");
  std::vector<double> ratios;
  for (size_t i = 0; i < d.pairs(); ++i) ratios.push_back(d.challenger[i] / d.incumbent[i]);
  return median(ratios);
}

}  // namespace hone::trial
