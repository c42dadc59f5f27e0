#include "hone/search/champion.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hone::search {
namespace {

constexpr double kFinalDuel = 1.08;  // times the best: worth a longer duel at the end
constexpr trial::DuelOptions kLongDuel = {.max_pairs = 150, .max_seconds = 0.6};

}  // namespace

Result<std::optional<Champion::Deposed>> Champion::refresh(measure::Runner& runner,
                                                           const Clock& clock) {
  std::optional<Deposed> deposed;
  if (!incumbent_.known()) return deposed;
  HONE_ASSIGN_OR_RETURN(const std::optional<measure::Measurement> failed,
                        incumbent_.refresh(runner, clock));
  if (!failed || !did_not_run(*failed)) return deposed;
  HONE_ASSIGN_OR_RETURN(const std::optional<measure::Measurement> again,
                        incumbent_.time_again(runner, clock));
  if (!again || !did_not_run(*again)) return deposed;
  std::optional<Finalist> bad = finalists_.remove(incumbent_.job().id);
  if (!bad) return deposed;
  const Finalist& next = finalists_.all().front();
  incumbent_.replace(next.candidate.job, next.seconds);
  deposed = Deposed{std::move(bad->candidate), *failed, *again};
  return deposed;
}

void Champion::install(std::span<const Candidate> candidates, std::span<Trial> trials,
                       const TrustedSchedules& trusted, double now) {
  const auto place = [&](const schedule::Steps& steps) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (trials[i].usable && candidates[i].steps == steps) return i;
    }
    return candidates.size();
  };
  size_t first = candidates.size();
  double reference = 0;
  for (const TrustedSchedules::Stored& stored : trusted.stored()) {
    if (first != candidates.size()) break;
    first = place(stored.steps), reference = stored.seconds;
  }
  if (first == candidates.size()) first = place(trusted.untuned()), reference = 0;
  for (size_t i = 0; i < candidates.size() && first == candidates.size(); ++i) {
    if (trials[i].usable) first = i;
  }
  if (first == candidates.size()) return;
  incumbent_.install(candidates[first].job, trials[first].measurement.timing.centre, reference,
                     now);
  for (Trial& trial : trials) trial.promoted = trial.measurement.id == incumbent_.job().id;
}

Status Champion::hold_duel(const Candidate& candidate, Trial& trial, measure::Runner& runner,
                           const trial::DuelOptions& options) {
  HONE_ASSIGN_OR_RETURN(Challenge challenge, incumbent_.challenge(candidate.job, runner, options));
  if (challenge.measurement.outcome == trial::Outcome::kWrongAnswer) {
    trial = {.measurement = std::move(challenge.measurement)};
    return ok_status();
  }
  trial.seconds = challenge.seconds;
  trial.promoted = challenge.verdict == trial::Verdict::kFaster;
  trial.measurement.duel = std::move(challenge.measurement.duel);
  return ok_status();
}

// The fastest come first: once one has won, most of the others need no duel.
Status Champion::challenge(std::span<const Candidate> candidates, std::span<Trial> trials,
                           measure::Runner& runner) {
  std::vector<size_t> order(trials.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return trials[a].seconds < trials[b].seconds; });
  for (const size_t i : order) {
    Trial& trial = trials[i];
    if (!trial.usable || trial.seconds >= incumbent_.to_beat() || trial.promoted) continue;
    if (trial.measurement.timing.stopped_early) {
      trial.seconds = incumbent_.just_slower();  // the drift changed under it: it was slower then
    } else {
      HONE_RETURN_IF_ERROR(hold_duel(candidates[i], trial, runner, {}));
    }
  }
  return ok_status();
}

Result<std::vector<Trial>> Champion::judge(std::span<const Candidate> candidates,
                                           std::vector<measure::Measurement> measurements,
                                           const TrustedSchedules& trusted, measure::Runner& runner,
                                           double now) {
  std::vector<Trial> trials(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    Trial& trial = trials[i];
    trial.measurement = std::move(measurements[i]);
    const bool ok = trial.measurement.outcome == trial::Outcome::kOk;
    if (ok) trial.seconds = trial.measurement.timing.centre;
    trial.usable = ok && (trial.measurement.verified || !checks_);
  }
  if (!incumbent_.known()) install(candidates, trials, trusted, now);
  for (Trial& trial : trials) trial.seconds /= incumbent_.drift();
  HONE_RETURN_IF_ERROR(challenge(candidates, trials, runner));
  int ran = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (trials[i].usable) finalists_.insert(candidates[i], trials[i].seconds);
    ran += candidates[i].runs() ? 1 : 0;
  }
  incumbent_.count(ran);
  return trials;
}

Result<std::vector<Champion::Final>> Champion::compare_finalists(measure::Runner& runner) {
  std::vector<Final> decided;
  for (const Finalist& finalist : finalists_.take()) {
    Trial trial{.seconds = finalist.seconds, .usable = true};
    if (finalist.candidate.job.id != incumbent_.job().id &&
        finalist.seconds < kFinalDuel * incumbent_.seconds()) {
      HONE_RETURN_IF_ERROR(hold_duel(finalist.candidate, trial, runner, kLongDuel));
      if (trial.promoted) {
        trial.measurement.verified = checks_;
        trial.measurement.timing.samples = trial.measurement.duel.challenger;
        trial::summarise(trial.measurement.timing);
      }
      if (trial.promoted || trial.measurement.outcome == trial::Outcome::kWrongAnswer)
        decided.push_back({finalist.candidate, trial});
    }
    if (trial.usable) finalists_.insert(finalist.candidate, trial.seconds);
  }
  return decided;
}

}  // namespace hone::search
