#include "hone/search/incumbent.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hone::search {
namespace {

// Of a new time that agrees with the drift so far: the rest is the samples' noise.
constexpr double kNewShare = 0.3;
constexpr double kChance = 0.05;      // that an equal wins a duel
constexpr int kEveryCandidates = 16;  // measured since the last time: it is timed again ...
constexpr double kEverySeconds = 2;   // ... or after so long

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

}  // namespace

void Incumbent::install(measure::Job job, double measured, double reference, double now) {
  job_ = std::move(job);
  seconds_ = reference > 0 ? reference : measured;
  first_drift_ = drift_ = measured / seconds_;
  quiet_ = std::min(1.0, drift_);
  stale_ = false, timed_at_ = now, since_ = 0;
}

bool Incumbent::due(double now) const {
  return known() && (stale_ || since_ >= kEveryCandidates || now - timed_at_ >= kEverySeconds ||
                     now < timed_at_);
}

Status Incumbent::refresh(measure::Runner& runner, const Clock& clock) {
  if (!due(clock.now_seconds())) return ok_status();
  measure::Job job = *job_;
  job.rival.reset();
  job.tolerance = 0;  // it was verified
  job.timing.best = std::numeric_limits<double>::infinity();
  job.timing.precision = std::max(job.timing.precision, 0.03);
  job.timing.max_samples = std::min(job.timing.max_samples, 15);
  job.timing.max_seconds = std::min(job.timing.max_seconds, 0.06);
  HONE_ASSIGN_OR_RETURN(const std::optional<measure::Measurement> m,
                        measure_now(runner, std::move(job)));
  timed_at_ = clock.now_seconds(), since_ = 0;
  if (!m || m->outcome != measure::Outcome::kOk) return ok_status();
  const double drift = m->timing.centre / seconds_;
  if (stale_) first_drift_ *= drift / drift_;  // another incumbent, not another machine
  const bool agrees = m->timing.low <= seconds_now() && seconds_now() <= m->timing.high;
  drift_ = agrees && !stale_ ? drift_ * std::pow(drift / drift_, kNewShare) : drift;
  quiet_ = std::min(quiet_, drift_);
  stale_ = false;
  return ok_status();
}

// Each of a thousand equals wins a duel with 5%, and each such win would lower the scale. So the
// more challengers there were, the more duels in a row one has to win: by chance that happens to
// one of all of them with 5%, too (Bonferroni).
int Incumbent::duels_to_win() const {
  return 1 + static_cast<int>(std::ceil(std::log(1.0 + challenges_) / std::log(1 / kChance)));
}

Result<Challenge> Incumbent::challenge(const measure::Job& challenger, measure::Runner& runner,
                                       const measure::DuelOptions& duel) {
  measure::Job job = challenger;
  job.rival = std::make_shared<measure::Job>(*job_);
  job.duel = duel;
  job.timeout_seconds += 2 * duel.hard_seconds;
  Challenge result{.seconds = just_slower()};
  double ratio = 1;
  const int to_win = duels_to_win();
  ++challenges_;
  for (int won = 0; won < to_win; ++won) {
    HONE_ASSIGN_OR_RETURN(std::optional<measure::Measurement> m, measure_now(runner, job));
    result.verdict = measure::Verdict::kUndecided;
    if (!m) return result;
    result.measurement = *std::move(m);
    const measure::Duel& fought = result.measurement.duel;
    if (result.measurement.outcome != measure::Outcome::kOk || fought.pairs() == 0) return result;
    result.verdict = measure::judge(fought, duel);
    ratio = measure::duel_ratio(fought);
    if (result.verdict != measure::Verdict::kFaster) {
      result.seconds = std::max(seconds_ * ratio, just_slower());
      return result;
    }
  }
  // The last duel tells the ratio: it was not chosen for it among many.
  result.seconds = std::min(seconds_ * ratio, std::nextafter(seconds_, 0.0));
  job_ = challenger;
  seconds_ = result.seconds;
  stale_ = true;
  return result;
}

}  // namespace hone::search
