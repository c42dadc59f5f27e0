#include "hone/search/trusted_schedules.h"

#include <algorithm>
#include <optional>

#include "hone/search/incumbent.h"

namespace hone::search {

bool did_not_run(const measure::Measurement& measurement) {
  return measurement.outcome == trial::Outcome::kCrash ||
         measurement.outcome == trial::Outcome::kTimeout ||
         measurement.outcome == trial::Outcome::kLoad;
}

bool TrustedSchedules::contain(const schedule::Steps& steps) const {
  return steps == untuned_ ||
         std::any_of(stored_.begin(), stored_.end(),
                     [&](const Stored& stored) { return stored.steps == steps; });
}

Status TrustedSchedules::try_again(std::vector<Candidate>& candidates,
                                   std::vector<measure::Measurement>& measurements, bool others_run,
                                   measure::Runner& runner) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    others_run |= measurements[i].outcome == trial::Outcome::kOk;
    if (did_not_run(measurements[i]) && contain(candidates[i].steps))
      doubtful_.push_back(candidates[i]);
  }
  if (!others_run) return ok_status();
  for (Candidate& candidate : std::exchange(doubtful_, {})) {
    HONE_ASSIGN_OR_RETURN(std::optional<measure::Measurement> again,
                          measure_now(runner, candidate.job));
    if (!again) return ok_status();
    if (did_not_run(*again)) failed_twice_.insert(schedule::hash(candidate.steps));
    candidates.push_back(std::move(candidate));
    measurements.push_back(*std::move(again));
  }
  return ok_status();
}

bool TrustedSchedules::is_refuted(const schedule::Steps& steps,
                                  const measure::Measurement& measurement) const {
  return measurement.outcome == trial::Outcome::kWrongAnswer ||
         (did_not_run(measurement) && failed_twice_.contains(schedule::hash(steps)));
}

void TrustedSchedules::invalidate(const schedule::Steps& steps) {
  std::erase_if(stored_, [&](const Stored& stored) { return stored.steps == steps; });
  untuned_is_wrong_ = untuned_is_wrong_ || steps == untuned_;
}

}  // namespace hone::search
