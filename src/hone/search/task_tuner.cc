#include "hone/search/task_tuner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hone/base/log.h"
#include "hone/compute/class_family.h"
#include "hone/machine/local.h"
#include "hone/search/prediction.h"
#include "hone/search/reference.h"
#include "hone/search/stored_trials.h"

namespace hone::search {
namespace {

constexpr double kTimeout = 5;         // seconds, for one candidate that nothing is known of ...
constexpr double kTimeoutOfBest = 50;  // ... and for others so many times the best, ...
constexpr double kLeastTimeout = 2;    // ... but no less: somebody else may have the machine
constexpr int64_t kBatchBytes = 256 << 20;  // of constants that one batch packs
constexpr size_t kKnownWell = 16;     // records of a task's own that make those of others needless
constexpr size_t kMaxLearned = 2000;  // records of earlier runs, for the cost model, the newest

}  // namespace

SearchTask TaskTuner::search_task() const {
  return {.space = &*space_,
          .target = context_.target,
          .model = context_.model,
          .threads = context_.threads,
          .key = task_.key,
          .seed = context_.seed,
          .pool = pool_,
          .family = compute::class_family(compute::kernel_class(*task_.dag))};
}

Status TaskTuner::open(db::TrialStore* store) {
  space_ = task_.space;
  if (!space_) {
    HONE_ASSIGN_OR_RETURN(space_,
                          space::Space::create(*task_.dag, *context_.target, context_.accuracy));
  }
  HONE_RETURN_IF_ERROR(make_source());
  trusted_.set_untuned(task_.start ? *task_.start : space_->steps(space_->default_point()));
  HONE_ASSIGN_OR_RETURN(predicted_seconds_,
                        predict_seconds(search_task(), *task_.dag, trusted_.untuned()));
  work_ = least_work(*task_.dag, *space_);
  constant_bytes_ = constant_bytes(*task_.dag);
  const bool excluded = context_.excluded && context_.excluded->contains(task_.key);
  if (store && !excluded) HONE_RETURN_IF_ERROR(load_stored_trials(*store));
  source_->suggest(trusted_.untuned(), start_);
  return ok_status();
}

// Fixed decisions stay as the schedule to be beaten has them, if that is a point of the space.
Status TaskTuner::choose_part() {
  if (!policy_->movable().restricts()) return ok_status();
  HONE_ASSIGN_OR_RETURN(space::Movable movable,
                        policy_->movable().choose(search_task(), *task_.dag));
  if (task_.start) start_ = space::exact_point(std::nullopt, *task_.start, *space_);
  if (start_) movable.bases.push_back(*start_);
  part_.emplace(*space_, movable);
  return ok_status();
}

Status TaskTuner::make_source() {
  policy_ = context_.policy;
  if (policy_ == nullptr) {
    HONE_ASSIGN_OR_RETURN(default_policy_, make_policy(kDefaultStrategy));
    policy_ = default_policy_.get();
  }
  HONE_RETURN_IF_ERROR(choose_part());
  source_.emplace(search_task(), policy_->make_searcher(search_task(), part_ ? &*part_ : nullptr));
  return ok_status();
}

Status TaskTuner::load_stored_trials(db::TrialStore& store) {
  HONE_ASSIGN_OR_RETURN(StoredTrials stored,
                        read_stored_trials(store, task_.key, context_, *space_));
  for (TrustedSchedules::Stored& best : stored.best) {
    source_->suggest(best.steps);
    trusted_.add_stored(std::move(best.steps), best.seconds);
  }
  stored_records_ = stored.records;
  source_->observe(stored.points, stored.seconds);
  const size_t old = stored.points.size() - std::min(stored.points.size(), kMaxLearned);
  teach_model(std::span(stored.points).subspan(old), std::span(stored.seconds).subspan(old));
  return ok_status();
}

void TaskTuner::start_from(const TransferPool& pool) {
  if (stored_records_ >= kKnownWell) return;
  const TransferResult found = transfer(search_task(), *task_.dag, pool,
                                        {.device = context_.device, .nearest = context_.nearest});
  offered_ = {found.sources, found.invalid};
  source_->suggest_transferred(found.candidates);
}

std::optional<Example> TaskTuner::example() const {
  if (finalists().empty()) return std::nullopt;
  const Candidate& best = finalists().front().candidate;
  Example example{std::nullopt, best.steps};
  if (best.point) example.point = space::to_portable(*space_, *best.point);
  return example;
}

void TaskTuner::teach(std::span<const space::Point> points, std::span<const double> seconds) {
  const InPhase choosing(context_.phases, Phase::kChoosing);
  source_->observe(points, seconds);
  policy_->observe(search_task(), points, seconds);
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
  const std::lock_guard lock(operands_mutex_);
  if (operands_.memory) return ok_status();
  HONE_ASSIGN_OR_RETURN(operands_, search::make_operands(*task_.dag, context_.seed,
                                                         machine::host_cores(*context_.target)));
  return ok_status();
}

bool TaskTuner::lower(Candidate& candidate) {
  candidate.trusted = trusted_.contain(candidate.steps);
  if (task_.lowered && !candidate.program) candidate.program = task_.lowered(candidate.steps);
  search::lower(candidate, *task_.dag, *context_.target);
  if (!candidate.runs() || log_.add_program(candidate.program_hash)) return true;
  const std::optional<double> seconds = log_.seconds_of_program(candidate.program_hash);
  if (seconds && candidate.point) source_->observe({&*candidate.point, 1}, {&*seconds, 1});
  return false;
}

Result<std::vector<Candidate>> TaskTuner::propose(int n) {
  HONE_RETURN_IF_ERROR(make_operands());
  return source_->propose(n, [this](Candidate& candidate) { return lower(candidate); });
}

Result<std::vector<Candidate>> TaskTuner::candidates_of(
    std::span<const schedule::Steps> schedules) {
  HONE_RETURN_IF_ERROR(make_operands());
  std::vector<Candidate> candidates;
  for (const schedule::Steps& steps : schedules) {
    candidates.push_back({.point = std::nullopt, .steps = steps});
    candidates.back().trusted = true;
    if (task_.lowered) candidates.back().program = task_.lowered(steps);
    candidates.back().job.id = log_.next_id();
  }
  return candidates;
}

void TaskTuner::build(Candidate& candidate) const {
  if (!candidate.runs()) return;
  search::build(candidate, *task_.dag, *context_.target, operands_);
  drop_if_it_spills(candidate);
  if (!candidate.runs()) return;
  measure::Job& job = candidate.job;
  job.threads = context_.threads;
  job.timing = context_.timing;
  job.weights = context_.weights;
  job.own_cache_bytes = context_.own_cache_bytes;
  job.tolerance = tolerance_of(*task_.dag, context_.tolerance);
  job.timeout_seconds = kTimeout + load_seconds(constant_bytes_, *context_.target);
  job.label = task_.name;
  if (context_.filter != nullptr)
    context_.filter->predict(candidate, *task_.dag, *context_.target, context_.threads, task_.key);
}

void TaskTuner::drop_known(std::vector<Candidate>& candidates) {
  const TrialLog::Known known = log_.hand_out(candidates);
  source_->observe(known.points, known.seconds);
}

void TaskTuner::filter(std::vector<Candidate>& candidates) {
  if (context_.filter == nullptr || finalists().empty()) return;
  const Finalist& best = finalists().front();
  const double predicted = best.candidate.predicted_seconds;
  std::vector<space::Point> points;
  std::vector<double> seconds;
  for (const Candidate& left_out : context_.filter->take_out(candidates, predicted)) {
    if (!left_out.point) continue;
    points.push_back(*left_out.point);
    seconds.push_back(best.seconds * left_out.predicted_seconds / predicted);
  }
  source_->observe(points, seconds);
}

int TaskTuner::max_batch() const {
  return static_cast<int>(
      std::clamp<int64_t>(kBatchBytes / std::max<int64_t>(constant_bytes_, 1), 2, 1024));
}

Result<Findings> TaskTuner::refresh(std::span<Candidate> candidates, measure::Runner& runner,
                                    const Clock& clock) {
  Findings findings;
  HONE_ASSIGN_OR_RETURN(const std::optional<Champion::Deposed> deposed,
                        champion_.refresh(runner, clock));
  if (deposed) depose(*deposed, findings);
  if (!incumbent().known()) return findings;
  const double best = incumbent().seconds_now();
  const double load = load_seconds(constant_bytes_, *context_.target);
  for (Candidate& candidate : candidates) {
    candidate.job.timing.best = best;
    candidate.job.timeout_seconds = std::max(kLeastTimeout, kTimeoutOfBest * best) + load;
  }
  return findings;
}

void TaskTuner::depose(const Champion::Deposed& deposed, Findings& findings) {
  const Candidate& bad = deposed.candidate;
  findings.records.push_back(record(bad, {.measurement = deposed.first}));
  findings.records.push_back(record(bad, {.measurement = deposed.second}));
  log_.add_failure(bad.code);
  if (bad.point) {
    const double failed = INFINITY;
    teach({&*bad.point, 1}, {&failed, 1});
  }
  invalidate(bad.steps, findings);
}

// The last record shows it.
void TaskTuner::invalidate(const schedule::Steps& bad, Findings& findings) {
  trusted_.invalidate(bad);
  findings.invalidated.push_back(findings.records.back());
}

Result<Findings> TaskTuner::observe(std::vector<Candidate> candidates,
                                    std::vector<measure::Measurement> measurements,
                                    measure::Runner& runner, const Clock& clock) {
  HONE_ASSERT(candidates.size() == measurements.size(), "one measurement per candidate");
  const InPhase measuring(context_.phases, Phase::kMeasuring);
  HONE_RETURN_IF_ERROR(trusted_.try_again(candidates, measurements, incumbent().known(), runner));
  HONE_ASSIGN_OR_RETURN(
      const std::vector<Trial> trials,
      champion_.judge(candidates, std::move(measurements), trusted_, runner, clock.now_seconds()));
  std::vector<space::Point> points;
  std::vector<double> seconds;
  Findings findings;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    const Trial& trial = trials[i];
    if (candidate.point) points.push_back(*candidate.point), seconds.push_back(trial.seconds);
    log_.add_trial(candidate, trial.seconds);
    if (candidate.steps == trusted_.untuned() && std::isfinite(trial.seconds))
      untuned_seconds_ = trial.seconds;
    findings.records.push_back(record(candidate, trial));
    if (trusted_.is_refuted(candidate.steps, trial.measurement))
      invalidate(candidate.steps, findings);
  }
  teach(points, seconds);
  return findings;
}

Result<Findings> TaskTuner::compare_finalists(measure::Runner& runner) {
  Findings findings;
  HONE_ASSIGN_OR_RETURN(const std::vector<Champion::Final> finals,
                        champion_.compare_finalists(runner));
  for (const auto& [candidate, trial] : finals) {
    findings.records.push_back(record(candidate, trial));
    if (trusted_.is_refuted(candidate.steps, trial.measurement))
      invalidate(candidate.steps, findings);
  }
  return findings;
}

TunedTask TaskTuner::result() const {
  const double least_drift = incumbent().least_drift();
  TunedTask tuned{trusted_.untuned(), trusted_.untuned(), 0, untuned_seconds_ * least_drift,
                  trials()};
  if (!finalists().empty()) {
    tuned.steps = finalists().front().candidate.steps;
    tuned.program = finalists().front().candidate.program;
    tuned.seconds = finalists().front().seconds * least_drift;
    const Finalists& finals = champion_.finalists();
    for (const Finalist& next : std::span(finalists()).subspan(1))
      tuned.runners_up.push_back({next.candidate.steps, next.seconds * least_drift,
                                  finals.has_other_split(next), finals.has_fewer_weights(next),
                                  next.candidate.program});
  } else if (!trusted_.stored().empty() && trusted_.stored()[0].seconds > 0) {
    tuned.steps = trusted_.stored()[0].steps, tuned.seconds = trusted_.stored()[0].seconds;
  }
  tuned.untuned_is_wrong = trusted_.untuned_is_wrong();
  tuned.offered = offered_;
  return tuned;
}

trial::Record TaskTuner::record(const Candidate& candidate, const Trial& trial) const {
  const TrialSource source = {task_.dag,        &*space_,         task_.key,
                              context_.device,  context_.version, context_.source,
                              context_.threads, context_.seed,    host_load_};
  trial::Record record =
      make_record(source, candidate, trial.measurement, trial.seconds, incumbent().drift());
  record.crowned = trial.promoted && record.outcome == trial::Outcome::kOk;
  return record;
}

}  // namespace hone::search
