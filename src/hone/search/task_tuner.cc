#include "hone/search/task_tuner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hone/base/log.h"

namespace hone::search {
namespace {

constexpr size_t kFinalists = 3;
constexpr double kTimeout = 5;         // seconds, for one candidate that nothing is known of ...
constexpr double kTimeoutOfBest = 50;  // ... and for others so many times the best, ...
constexpr double kLeastTimeout = 2;    // ... but no less: somebody else may have the machine
constexpr int64_t kFewerWeights = 2;   // times fewer
constexpr double kFinalDuel = 1.08;    // times the best: worth a longer duel at the end
constexpr trial::DuelOptions kLongDuel = {.max_pairs = 150, .max_seconds = 0.6};
constexpr int kRounds = 6;                  // of questions to the searcher for one batch
constexpr int64_t kBatchBytes = 256 << 20;  // of constants that one batch packs

// Not what says that the code is wrong: that may be an accident of the machine.
bool did_not_run(const measure::Measurement& m) {
  return m.outcome == trial::Outcome::kCrash || m.outcome == trial::Outcome::kTimeout ||
         m.outcome == trial::Outcome::kLoad;
}

}  // namespace

SearchTask TaskTuner::search_task() const {
  return {&*space_,  context_.target, context_.model, context_.threads,
          task_.key, context_.seed,   pool_};
}

void TaskTuner::teach(std::span<const space::Point> points, std::span<const double> seconds) {
  searcher_->observe(points, seconds);
  teach_model(points, seconds);
}

void TaskTuner::teach_model(std::span<const space::Point> points, std::span<const double> seconds) {
  if (!context_.model->learns()) return;
  std::vector<space::Candidate> candidates;
  candidates.reserve(points.size());  // queries point into it
  std::vector<cost::Observation> observations;
  for (size_t i = 0; i < points.size(); ++i) {
    Result<space::Candidate> candidate = space_->instantiate(points[i]);
    if (!candidate.ok()) continue;
    candidates.push_back(std::move(candidate).value());
    observations.push_back(
        {{&candidates.back(), context_.target, context_.threads, task_.key}, seconds[i]});
  }
  const Status learned = context_.model->update(observations);
  if (!learned.ok()) log_warning("cost model {}: {}", context_.model->name(), learned.message());
}

Status TaskTuner::make_operands() {
  if (operands_.memory) return ok_status();
  HONE_ASSIGN_OR_RETURN(operands_,
                        search::make_operands(*task_.dag, context_.seed, context_.target->cores));
  return ok_status();
}

bool TaskTuner::lower(Candidate& candidate) {
  search::lower(candidate, *task_.dag, *context_.target);
  if (!candidate.runs()) return true;
  const auto [place, added] = programs_.emplace(candidate.program_hash, 0);
  if (added) return true;
  const auto known = known_code_.find(place->second);
  if (known != known_code_.end() && candidate.point)
    searcher_->observe({&*candidate.point, 1}, {&known->second, 1});
  return false;
}

Result<std::vector<Candidate>> TaskTuner::propose(int n) {
  HONE_RETURN_IF_ERROR(make_operands());
  std::vector<Candidate> candidates;
  exhausted_ = true;
  const auto add = [&](std::optional<space::Point> point, schedule::Steps steps) {
    if (!tried_.insert(schedule::hash(steps)).second) return;
    exhausted_ = false;
    Candidate candidate{.point = std::move(point), .steps = std::move(steps)};
    if (lower(candidate)) candidates.push_back(std::move(candidate));
  };
  for (const Example& example : std::exchange(adopted_, {})) suggest_like(example);
  while (!first_.empty() && static_cast<int>(candidates.size()) < n) {
    Suggestion next = std::move(first_.front());
    first_.erase(first_.begin());
    if (!next.point) next.point = space::exact_point(std::nullopt, next.steps, *space_);
    add(std::move(next.point), std::move(next.steps));
  }
  // The searcher may name a point that was suggested or differs from another only in words: ask
  // again until the batch is full.
  for (int round = 0; round < kRounds && static_cast<int>(candidates.size()) < n; ++round) {
    const std::vector<space::Point> points =
        searcher_->propose(n - static_cast<int>(candidates.size()));
    if (points.empty()) break;
    for (const space::Point& point : points) add(point, space_->steps(point));
  }
  return candidates;
}

Result<std::vector<Candidate>> TaskTuner::candidates_of(
    std::span<const schedule::Steps> schedules) {
  HONE_RETURN_IF_ERROR(make_operands());
  std::vector<Candidate> candidates;
  for (const schedule::Steps& steps : schedules) {
    candidates.push_back({.point = std::nullopt, .steps = steps});
    candidates.back().job.id = next_id_++;
  }
  return candidates;
}

void TaskTuner::build(Candidate& candidate) const {
  if (!candidate.runs()) return;
  search::build(candidate, *task_.dag, *context_.target, operands_);
  if (!candidate.runs()) return;
  measure::Job& job = candidate.job;
  job.threads = context_.threads;
  job.timing = context_.timing;
  job.weights = context_.weights;
  job.own_cache_bytes = context_.own_cache_bytes;
  job.tolerance = context_.tolerance;
  job.timeout_seconds = kTimeout + pack_seconds(constant_bytes_);
  job.label = task_.name;
}

void TaskTuner::drop_known(std::vector<Candidate>& candidates) {
  for (const Candidate& candidate : candidates) {
    if (candidate.runs()) programs_[candidate.program_hash] = candidate.code;
  }
  std::vector<space::Point> points;
  std::vector<double> seconds;
  std::erase_if(candidates, [&](const Candidate& candidate) {
    if (!candidate.runs()) return false;
    if (in_flight_.contains(candidate.code)) return true;  // its time is not known yet
    const auto known = known_code_.find(candidate.code);
    if (known == known_code_.end()) return false;
    if (candidate.point) points.push_back(*candidate.point), seconds.push_back(known->second);
    return true;
  });
  // Two of one batch: the second is dropped without a word, its time is not known yet.
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto twin = [&](const Candidate& other) {
      return other.runs() && other.code == candidates[i].code;
    };
    if (!candidates[i].runs()) continue;
    candidates.erase(std::remove_if(candidates.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                    candidates.end(), twin),
                     candidates.end());
  }
  for (Candidate& candidate : candidates) {
    if (candidate.runs()) in_flight_.insert(candidate.code);
    candidate.job.id = next_id_++;
  }
  searcher_->observe(points, seconds);
}

int TaskTuner::max_batch() const {
  return static_cast<int>(
      std::clamp<int64_t>(kBatchBytes / std::max<int64_t>(constant_bytes_, 1), 2, 1024));
}

Result<Findings> TaskTuner::refresh(std::span<Candidate> candidates, measure::Runner& runner,
                                    const Clock& clock) {
  Findings findings;
  if (!incumbent_.known()) return findings;
  HONE_ASSIGN_OR_RETURN(const std::optional<measure::Measurement> failed,
                        incumbent_.refresh(runner, clock));
  if (failed && did_not_run(*failed)) {
    HONE_ASSIGN_OR_RETURN(const std::optional<measure::Measurement> again,
                          incumbent_.time_again(runner, clock));
    if (again && did_not_run(*again)) {
      HONE_ASSIGN_OR_RETURN(findings, depose(*failed, *again));
    }
  }
  const double best = incumbent_.seconds_now();
  const double pack = pack_seconds(constant_bytes_);
  for (Candidate& candidate : candidates) {
    candidate.job.timing.best = best;
    candidate.job.timeout_seconds = std::max(kLeastTimeout, kTimeoutOfBest * best) + pack;
  }
  return findings;
}

// The incumbent ran before and does not any more. Without another one that runs nothing changes.
Result<Findings> TaskTuner::depose(const measure::Measurement& first,
                                   const measure::Measurement& second) {
  Findings findings;
  const auto found = std::find_if(finalists_.begin(), finalists_.end(), [&](const Finalist& f) {
    return f.candidate.job.id == incumbent_.job().id;
  });
  if (found == finalists_.end() || finalists_.size() < 2) return findings;
  const Candidate bad = std::move(found->candidate);
  finalists_.erase(found);
  incumbent_.replace(finalists_.front().candidate.job, finalists_.front().seconds);
  findings.records.push_back(record(bad, {.measurement = first}));
  findings.records.push_back(record(bad, {.measurement = second}));
  if (bad.code != 0) known_code_[bad.code] = INFINITY;
  if (bad.point) {
    const double failed = INFINITY;
    teach({&*bad.point, 1}, {&failed, 1});
  }
  withdraw(bad.steps, findings.records.back(), findings);
  return findings;
}

void TaskTuner::install(std::span<const Candidate> candidates, std::span<const Trial> trials,
                        double now) {
  const auto place = [&](const schedule::Steps& steps) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (trials[i].usable && candidates[i].steps == steps) return i;
    }
    return candidates.size();
  };
  size_t first = candidates.size();
  double reference = 0;
  for (size_t k = 0; k < stored_.size() && first == candidates.size(); ++k)
    first = place(stored_[k].first), reference = stored_[k].second;
  if (first == candidates.size()) first = place(untuned_steps_), reference = 0;
  for (size_t i = 0; i < candidates.size() && first == candidates.size(); ++i) {
    if (trials[i].usable) first = i;
  }
  if (first == candidates.size()) return;
  incumbent_.install(candidates[first].job, trials[first].measurement.timing.centre, reference,
                     now);
}

Status TaskTuner::hold_duel(const Candidate& candidate, Trial& trial, measure::Runner& runner,
                            const trial::DuelOptions& options) {
  HONE_ASSIGN_OR_RETURN(Challenge challenge, incumbent_.challenge(candidate.job, runner, options));
  if (challenge.measurement.outcome == trial::Outcome::kWrongAnswer) {
    trial = {.measurement = std::move(challenge.measurement)};
    return ok_status();
  }
  trial.seconds = challenge.seconds;
  trial.crowned = challenge.verdict == trial::Verdict::kFaster;
  trial.measurement.duel = std::move(challenge.measurement.duel);
  return ok_status();
}

void TaskTuner::insert_finalist(const Candidate& candidate, double seconds) {
  const auto place = std::upper_bound(finalists_.begin(), finalists_.end(), seconds,
                                      [](double t, const Finalist& f) { return t < f.seconds; });
  finalists_.insert(place, {candidate, seconds});
  // Behind the fastest ones the first with another split and the first with fewer weights, if none
  // of those before is such a one.
  size_t kept = 0;
  bool split = false, fewer = false;
  for (size_t i = 0; i < finalists_.size(); ++i) {
    const bool first_split = !split && has_other_split(finalists_[i]);
    const bool first_fewer = !fewer && has_fewer_weights(finalists_[i]);
    split = split || first_split;
    fewer = fewer || first_fewer;
    if (i >= kFinalists && !first_split && !first_fewer) continue;
    if (i > kept) finalists_[kept] = std::move(finalists_[i]);
    ++kept;
  }
  finalists_.erase(finalists_.begin() + static_cast<std::ptrdiff_t>(kept), finalists_.end());
}

bool TaskTuner::has_other_split(const Finalist& finalist) const {
  const auto num_tiles = [](const Finalist& f) { return f.candidate.job.phases.back().num_tiles; };
  return context_.threads > 1 && num_tiles(finalist) != num_tiles(finalists_.front());
}

bool TaskTuner::has_fewer_weights(const Finalist& finalist) const {
  const auto bytes = [](const Finalist& f) {
    int64_t packed = 0, given = 0;
    for (const measure::Argument& argument : f.candidate.job.arguments) {
      if (argument.role == ir::Role::kPacked) packed += argument.bytes;
      if (argument.role == ir::Role::kConstant) given += argument.bytes;
    }
    return packed > 0 ? packed : given;
  };
  return context_.weights == measure::Weights::kShared &&
         kFewerWeights * bytes(finalist) <= bytes(finalists_.front());
}

// What was right when it was stored, by another version or by luck.
void TaskTuner::withdraw(const schedule::Steps& bad, const trial::Record& record,
                         Findings& findings) {
  std::erase_if(stored_, [&](const auto& stored) { return stored.first == bad; });
  untuned_is_wrong_ = untuned_is_wrong_ || bad == untuned_steps_;
  findings.withdrawn.push_back(record);
}

bool TaskTuner::trusted(const schedule::Steps& steps) const {
  return steps == untuned_steps_ ||
         std::any_of(stored_.begin(), stored_.end(),
                     [&](const auto& stored) { return stored.first == steps; });
}

// As long as nothing of the task runs, it may be the machine's fault: they wait.
Status TaskTuner::try_again(std::vector<Candidate>& candidates,
                            std::vector<measure::Measurement>& measurements,
                            measure::Runner& runner) {
  bool others_run = incumbent_.known();
  for (size_t i = 0; i < candidates.size(); ++i) {
    others_run |= measurements[i].outcome == trial::Outcome::kOk;
    if (did_not_run(measurements[i]) && trusted(candidates[i].steps))
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

Result<Findings> TaskTuner::observe(std::vector<Candidate> candidates,
                                    std::vector<measure::Measurement> measurements,
                                    measure::Runner& runner, const Clock& clock) {
  HONE_ASSERT(candidates.size() == measurements.size(), "one measurement per candidate");
  HONE_RETURN_IF_ERROR(try_again(candidates, measurements, runner));
  std::vector<Trial> trials(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    Trial& trial = trials[i];
    trial.measurement = std::move(measurements[i]);
    const bool ok = trial.measurement.outcome == trial::Outcome::kOk;
    if (ok) trial.seconds = trial.measurement.timing.centre;
    trial.usable = ok && (trial.measurement.verified || context_.tolerance == 0);
  }
  if (!incumbent_.known()) {
    install(candidates, trials, clock.now_seconds());
    for (Trial& trial : trials)
      trial.crowned = incumbent_.known() && trial.measurement.id == incumbent_.job().id;
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < trials.size(); ++i) {
    trials[i].seconds /= incumbent_.drift();
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return trials[a].seconds < trials[b].seconds; });
  for (const size_t i : order) {
    Trial& trial = trials[i];
    if (!trial.usable || trial.seconds >= incumbent_.to_beat() || trial.crowned) continue;
    if (trial.measurement.timing.stopped_early) {
      trial.seconds = incumbent_.just_slower();  // the drift changed under it: it was slower then
    } else {
      HONE_RETURN_IF_ERROR(hold_duel(candidates[i], trial, runner, {}));
    }
  }

  std::vector<space::Point> points;
  std::vector<double> seconds;
  Findings findings;
  int ran = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    const Trial& trial = trials[i];
    if (candidate.point) points.push_back(*candidate.point), seconds.push_back(trial.seconds);
    in_flight_.erase(candidate.code);
    if (candidate.runs()) known_code_[candidate.code] = trial.seconds, ++ran;
    if (candidate.steps == untuned_steps_ && std::isfinite(trial.seconds))
      untuned_seconds_ = trial.seconds;
    findings.records.push_back(record(candidate, trial));
    if (trial.measurement.outcome == trial::Outcome::kWrongAnswer ||
        (did_not_run(trial.measurement) && failed_twice_.contains(schedule::hash(candidate.steps))))
      withdraw(candidate.steps, findings.records.back(), findings);
    if (trial.usable) insert_finalist(candidate, trial.seconds);
  }
  trials_ += ran;
  incumbent_.count(ran);
  teach(points, seconds);
  return findings;
}

Result<Findings> TaskTuner::settle(measure::Runner& runner) {
  Findings findings;
  const std::vector<Finalist> all = std::exchange(finalists_, {});
  for (const Finalist& finalist : all) {
    Trial trial{.seconds = finalist.seconds, .usable = true};
    if (finalist.candidate.job.id != incumbent_.job().id &&
        finalist.seconds < kFinalDuel * best_seconds()) {
      HONE_RETURN_IF_ERROR(hold_duel(finalist.candidate, trial, runner, kLongDuel));
      if (trial.crowned) {
        trial.measurement.verified = context_.tolerance > 0;
        trial.measurement.timing.samples = trial.measurement.duel.challenger;
        trial::summarise(trial.measurement.timing);
        findings.records.push_back(record(finalist.candidate, trial));
      } else if (trial.measurement.outcome == trial::Outcome::kWrongAnswer) {
        findings.records.push_back(record(finalist.candidate, trial));
        withdraw(finalist.candidate.steps, findings.records.back(), findings);
      }
    }
    if (trial.usable) insert_finalist(finalist.candidate, trial.seconds);
  }
  return findings;
}

trial::Record TaskTuner::record(const Candidate& candidate, const Trial& trial) const {
  const TrialSource source = {task_.dag,        &*space_,         task_.key,
                              context_.device,  context_.version, context_.source,
                              context_.threads, context_.seed,    host_load_};
  trial::Record record =
      make_record(source, candidate, trial.measurement, trial.seconds, incumbent_.drift());
  record.crowned = trial.crowned && record.outcome == trial::Outcome::kOk;
  return record;
}

}  // namespace hone::search
