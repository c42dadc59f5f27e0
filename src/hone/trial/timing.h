// trial/timing.h - how long one candidate took, and which one of two was faster when both ran in
// turns (a duel).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hone::trial {

struct Timing {
  std::vector<double> samples;  // seconds a run, at least one
  double centre = 0, low = 0, high = 0;
  int64_t runs = 0;            // all, warm-up included
  bool stopped_early = false;  // clearly slower than the best
};

// Centre and interval of its samples.
void summarise(Timing& timing);

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

// Whether the challenger is faster, at 95% confidence.
[[nodiscard]] Verdict judge(const Duel& duel, const DuelOptions& options = {});
// Challenger's time / incumbent's time: the median over pairs. Needs a pair.
[[nodiscard]] double duel_ratio(const Duel& duel);

}  // namespace hone::trial
