// trial/timing.h - the run time of one candidate, and a comparison of two that ran alternately (a
// duel).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hone::trial {

struct Timing {
  std::vector<double> samples;  // seconds per run, at least one sample
  double centre = 0, low = 0, high = 0;
  int64_t runs = 0;            // number of runs, including warm-up
  bool stopped_early = false;  // the candidate was clearly slower than the best
};

// Sets the centre and the interval of the samples.
void summarise(Timing& timing);

struct DuelOptions {
  double sample_seconds = 3e-4;  // a sample is the number of runs that takes about this long
  int max_pairs = 40;
  // Limit of the run time; 7 pairs are measured in any case, as a sign test needs 6.
  double max_seconds = 0.3;
  double hard_seconds = 3;  // limit of the run time even with fewer than 7 pairs
  // After max_seconds, 3 pairs that all differ by more than this factor are enough, as
  // interruptions average out in slow runs.
  double decisive = 1.5;
};

struct Duel {
  std::vector<double> challenger, incumbent;  // seconds per run, in pairs
  [[nodiscard]] size_t pairs() const { return challenger.size(); }
};

enum class Verdict : uint8_t { kUndecided, kFaster, kSlower };

// Decides at 95% confidence whether the challenger is faster.
[[nodiscard]] Verdict judge(const Duel& duel, const DuelOptions& options = {});
// Returns the median over pairs of the challenger's time divided by the incumbent's. There must be
// a pair.
[[nodiscard]] double duel_ratio(const Duel& duel);

}  // namespace hone::trial
