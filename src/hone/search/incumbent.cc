#include "hone/search/incumbent.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hone::search {
namespace {

// Of a new time that agrees with the drift so far: the rest is the samples' noise.
constexpr double kNewShare = 0.3;
// A machine that seems so much slower than before is looked at again: a slow moment is soon over,
// and candidates divided by it would all seem fast.
constexpr double kJump = 1.1;
constexpr int kLooks = 3;
constexpr double kChance = 0.05;      // that an equal wins a duel
constexpr int kEveryCandidates = 16;  // measured since the last time: it is timed again ...
constexpr double kEverySeconds = 2;   // ... or after so long

}  // namespace

Result<std::optional<measure::Measurement>> measure_now(measure::Runner& runner, measure::Job job) {
  const uint64_t id = job.id;
  std::vector<measure::Job> jobs;
  jobs.push_back(std::move(job));
  HONE_RETURN_IF_ERROR(runner.submit(std::move(jobs)));
  HONE_ASSIGN_OR_RETURN(std::vector<measure::Measurement> answers, runner.collect());
  if (answers.size() != 1 || answers[0].id != id)
    return std::optional<measure::Measurement>();  // cancelled
  return std::optional<measure::Measurement>(std::move(answers[0]));
}

void Incumbent::install(measure::Job job, double measured, double reference, double now) {
  job_ = std::move(job);
  first_ = job_;
  seconds_ = held_ = first_seconds_ = reference > 0 ? reference : measured;
  first_drift_ = drift_ = measured / seconds_;
  least_drift_ = std::min(1.0, drift_);
  stale_ = false, timed_at_ = now, since_ = 0;
}

bool Incumbent::due(double now) const {
  return known() && (stale_ || since_ >= kEveryCandidates || now - timed_at_ >= kEverySeconds ||
                     now < timed_at_);
}

Result<std::optional<measure::Measurement>> Incumbent::refresh(measure::Runner& runner,
                                                               const Clock& clock) {
  if (!due(clock.now_seconds())) return std::optional<measure::Measurement>();
  if (stale_) HONE_RETURN_IF_ERROR(compare_with_first(runner));
  return time_again(runner, clock);
}

Status Incumbent::compare_with_first(measure::Runner& runner) {
  measure::Job job = *job_;
  job.tolerance = 0;  // it was verified
  job.rival = std::make_shared<measure::Job>(*first_);
  job.timeout_seconds += 2 * job.duel.hard_seconds;
  stale_ = false;
  // Each in both memories: the geometric mean of two duels.
  double ratio = 1;
  for (const bool swap : {false, true}) {
    job.swap_memory = swap;
    HONE_ASSIGN_OR_RETURN(const std::optional<measure::Measurement> m, measure_now(runner, job));
    if (!m || m->outcome != trial::Outcome::kOk || m->duel.pairs() == 0) return ok_status();
    ratio *= std::sqrt(trial::duel_ratio(m->duel));
  }
  held_ = first_seconds_ * ratio;
  return ok_status();
}

Result<std::optional<measure::Measurement>> Incumbent::time_again(measure::Runner& runner,
                                                                  const Clock& clock) {
  measure::Job job = *job_;
  job.rival.reset();
  job.tolerance = 0;  // it was verified
  job.timing.best = std::numeric_limits<double>::infinity();
  job.timing.precision = std::max(job.timing.precision, 0.03);
  job.timing.max_samples = std::min(job.timing.max_samples, 15);
  job.timing.max_seconds = std::min(job.timing.max_seconds, 0.06);
  std::optional<trial::Timing> least;
  for (int look = 0; look < kLooks; ++look) {
    HONE_ASSIGN_OR_RETURN(const std::optional<measure::Measurement> m, measure_now(runner, job));
    timed_at_ = clock.now_seconds(), since_ = 0;
    if (!m || m->outcome != trial::Outcome::kOk) return m;
    if (!least || m->timing.centre < least->centre) least = m->timing;
    if (least->centre < kJump * seconds_now()) break;
  }
  const double drift = least->centre / held_;
  const bool agrees = least->low <= seconds_now() && seconds_now() <= least->high;
  drift_ = agrees ? drift_ * std::pow(drift / drift_, kNewShare) : drift;
  least_drift_ = std::min(least_drift_, drift_);
  return std::optional<measure::Measurement>();
}

void Incumbent::replace(measure::Job job, double seconds) {
  const bool first_failed = first_->id == job_->id;
  job_ = std::move(job);
  seconds_ = held_ = seconds;
  stale_ = !first_failed;
  if (first_failed) first_ = job_, first_seconds_ = seconds;
}

// Each of a thousand equals wins a duel with 5%, and each such win would lower the scale. So the
// more challengers there were, the more duels in a row one has to win: by chance that happens to
// one of all of them with 5%, too (Bonferroni). Two at least, one in the memory of the other.
int Incumbent::duels_to_win() const {
  const double chances = std::log(1.0 + challenges_) / std::log(1 / kChance);
  return std::max(2, 1 + static_cast<int>(std::ceil(chances)));
}

Result<Challenge> Incumbent::challenge(const measure::Job& challenger, measure::Runner& runner,
                                       const trial::DuelOptions& duel) {
  measure::Job job = challenger;
  job.rival = std::make_shared<measure::Job>(*job_);
  job.duel = duel;
  job.timeout_seconds += 2 * duel.hard_seconds;
  Challenge result{.seconds = just_slower()};
  double ratio = 1, before = 1;
  const int to_win = duels_to_win();
  ++challenges_;
  for (int won = 0; won < to_win; ++won) {
    job.swap_memory = won % 2 == 1;
    HONE_ASSIGN_OR_RETURN(std::optional<measure::Measurement> m, measure_now(runner, job));
    result.verdict = trial::Verdict::kUndecided;
    if (!m) return result;
    result.measurement = *std::move(m);
    const trial::Duel& fought = result.measurement.duel;
    if (result.measurement.outcome != trial::Outcome::kOk || fought.pairs() == 0) return result;
    result.verdict = trial::judge(fought, duel);
    before = std::exchange(ratio, trial::duel_ratio(fought));
    if (result.verdict != trial::Verdict::kFaster) {
      result.seconds = std::max(held_ * ratio, just_slower());
      return result;
    }
  }
  // The last two tell the ratio, one in each memory.
  held_ *= std::sqrt(before * ratio);
  result.seconds = std::min(held_, std::nextafter(seconds_, 0.0));
  job_ = challenger;
  seconds_ = result.seconds;
  stale_ = true;
  return result;
}

}  // namespace hone::search
